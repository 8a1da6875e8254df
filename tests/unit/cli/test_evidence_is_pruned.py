"""`stayer storage prune` over a store in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from stayer_evaluator.snapshots.prune import PrunePlan
from stayer_evaluator.storage.memory import MemoryStore
from stayer_operator.cli import store_access
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.main import app
from stayer_operator.cli.storage import prune_store

RUN = "runs/lab/demo-1a2b3c4d/"
OTHER = "runs/lab/demo-1a2b3c4d5/demo-0123456789/trial.json"
KEYS = (
    f"{RUN}demo-0123456789/trial.json",
    f"{RUN}demo-0123456789/queue/00000000",
    f"{RUN}demo-0123456789/packs/ab",
    f"{RUN}demo-0123456789/results.json",
    OTHER,
    "tasks/d1/task.json",
)


def prune(store: MemoryStore, *runs: str, delete: bool = True, **options: bool) -> PrunePlan:
    options = {"keep_results": False, **options}
    return asyncio.run(prune_store(store, runs, (), delete=delete, **options))


def test_a_run_goes_and_its_neighbours_stay() -> None:
    store = MemoryStore(dict.fromkeys(KEYS, b"x"))

    plan = prune(store, RUN)

    assert plan.by_prefix == ((RUN, 4),)
    assert set(store.objects) == {OTHER, "tasks/d1/task.json"}


def test_results_and_documents_may_stay() -> None:
    store = MemoryStore(dict.fromkeys(KEYS, b"x"))

    prune(store, RUN, keep_results=True)

    assert {key for key in store.objects if key.startswith(RUN)} == {KEYS[0], KEYS[3]}


def test_without_yes_it_is_only_told() -> None:
    store = MemoryStore(dict.fromkeys(KEYS, b"x"))

    plan = prune(store, RUN, delete=False)

    assert len(plan.delete) == 4
    assert set(store.objects) == set(KEYS)


@pytest.mark.parametrize("runs", [(), ("",), ("runs/",), ("runs/lab/",), ("tasks/d1/",)])
def test_what_is_no_run_is_refused_and_nothing_goes(runs: tuple[str, ...]) -> None:
    store = MemoryStore(dict.fromkeys(KEYS, b"x"))

    with pytest.raises(CliError, match=r"accepted|not a run's prefix"):
        prune(store, *runs)

    assert set(store.objects) == set(KEYS)


def test_where_nothing_lies_it_says_so() -> None:
    with pytest.raises(CliError, match="runs/lab/demo-1a2b3c4d/: nothing there"):
        prune(MemoryStore(), RUN)


def test_a_prefix_with_nothing_beside_one_with_something_does_not_stop() -> None:
    store = MemoryStore(dict.fromkeys(KEYS, b"x"))

    assert prune(store, RUN, "runs/lab/gone-00000000/").by_prefix[1][1] == 0
    assert set(store.objects) == {OTHER, "tasks/d1/task.json"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    made = MemoryStore(dict.fromkeys(KEYS, b"x"))
    monkeypatch.setattr(store_access, "open_store", lambda: made)
    return made


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["storage", "prune", *arguments, "--yes"])


def put_run(api: Any, phase: str, complete: str, uid: str = "1a2b3c4d-0000") -> None:
    status = {
        "phase": phase,
        "conditions": [{"type": "Complete", "status": complete}],
        "observedGeneration": 1,
    }
    api.put("benchmarkruns", "demo", metadata={"uid": uid}, spec={}, status=status)


@pytest.mark.parametrize("prefix", [RUN, RUN.rstrip("/")])
def test_a_run_that_goes_on_is_refused(api: Any, store: MemoryStore, prefix: str) -> None:
    put_run(api, "Running", "False")

    said = command(prefix)

    assert isinstance(said.exception, CliError)
    assert str(said.exception).startswith("run demo in namespace lab has not ended (Running)")
    assert set(store.objects) == set(KEYS)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(("Succeeded", "True"), id="it has ended"),
        pytest.param(("Running", "False", "ffffffff-0000"), id="another run of the same name"),
        pytest.param(None, id="it was deleted"),
    ],
)
def test_a_run_that_does_not_go_on_is_pruned_with_or_without_the_last_slash(
    api: Any, store: MemoryStore, state: tuple[str, ...] | None
) -> None:
    if state:
        put_run(api, *state)

    said = command(RUN.rstrip("/"))

    assert (said.exit_code, said.stderr) == (0, "")
    assert set(store.objects) == {OTHER, "tasks/d1/task.json"}


def test_without_a_cluster_one_line_says_so_and_it_goes_on(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))

    said = command(RUN, RUN)

    assert said.exit_code == 0
    assert said.stderr.startswith("not asked whether the runs have ended: no cluster: ")
    assert said.stderr.count("\n") == 1
    assert set(store.objects) == {OTHER, "tasks/d1/task.json"}
