"""`stayer storage prune` over a store in memory."""

import asyncio

import pytest

from stayer_evaluator.snapshots.prune import PrunePlan
from stayer_evaluator.storage.memory import MemoryStore
from stayer_operator.cli.errors import CliError
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
