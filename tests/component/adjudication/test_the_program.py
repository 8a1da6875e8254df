"""The whole adjudicator process but for its relay: settings, proofs, messages, exit status."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from makers_adjudication import Stand, seed, stand
from makers_runner import Box, task_container
from makers_tasks import write_task
from stayer_evaluator.adjudication.program import Program
from stayer_evaluator.episode.config import Places, RecorderSettings, TaskSide, Timing
from stayer_evaluator.records.exits import FAILED, NOT_ISOLATED, STORE_UNREACHABLE
from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.store import StoreError


def settings(root: Path, document: TrialDocument, **options: object) -> RecorderSettings:
    return RecorderSettings(
        trial=document.trial,
        prefix=document.prefix,
        incarnation=1,
        trial_sha256=hashlib.sha256(document.to_bytes()).hexdigest(),
        relay_url="http://relay.test",
        places=Places(
            jobs=root / "jobs", out=root / "out", state=root / "state", home=root / "home",
            workspace=root / "workspace", suite=root / "suite", token=root / "token",
            termination_log=root / "termination-log",
        ),
        task_side=TaskSide(
            runner=str(root / "runner"), workspace=str(root / "workspace"),
            home=str(root / "home"), suite=str(root / "suite"),
        ),
        timing=Timing(isolation_patience=0.1, runner_patience=20, result_patience=15),
        host="127.0.0.1",
        port=0,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip


def message(root: Path) -> TerminationMessage:
    return TerminationMessage.from_bytes((root / "termination-log").read_bytes())


async def run(trial: Stand, document: TrialDocument, **options: object) -> int:
    await trial.store.create(TrialKeys(document.prefix).document, document.to_bytes())
    return await Program(settings(trial.box.root, document, **options), trial.store).run()


def relaxed(trial: Stand, kind: TrialKind) -> TrialDocument:
    return trial.document(kind).model_copy(update={"user_namespaces": "off"})


@pytest.fixture
def box_and_trial(tmp_path: Path) -> Iterator[tuple[Box, Stand]]:
    with task_container() as box:
        yield box, stand(box, write_task(tmp_path))


def test_an_inventory_and_its_message(box_and_trial: tuple[Box, Stand], tmp_path: Path) -> None:
    box, trial = box_and_trial
    seed(trial.task / "base", box.root / "workspace")
    code = asyncio.run(run(trial, relaxed(trial, TrialKind.INVENTORY)))
    said = message(box.root)
    assert (code, said.kind, said.accepted, said.valid) == (0, "results", True, True)
    assert box.process.wait(timeout=20) == 0  # the quit job ended the container


def test_what_is_reachable_and_must_not_be_stops_it(box_and_trial: tuple[Box, Stand]) -> None:
    box, trial = box_and_trial
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = ("127.0.0.1", server.getsockname()[1])
        code = asyncio.run(run(trial, relaxed(trial, TrialKind.ATTEMPT), must_fail=(address,)))
    assert code == NOT_ISOLATED
    assert message(box.root).reason == "IsolationNotEnforced"


def test_root_of_the_node_stops_it_where_a_user_namespace_is_required(
    box_and_trial: tuple[Box, Stand],
) -> None:
    box, trial = box_and_trial
    code = asyncio.run(run(trial, trial.document(TrialKind.ATTEMPT)))
    assert (code, message(box.root).reason) == (NOT_ISOLATED, "UserNamespaceNotEnforced")


def test_another_document_is_refused(box_and_trial: tuple[Box, Stand]) -> None:
    box, trial = box_and_trial
    document = relaxed(trial, TrialKind.ATTEMPT)
    other = document.model_copy(update={"attempt": 2})

    async def swapped() -> int:
        await trial.store.create(TrialKeys(document.prefix).document, other.to_bytes())
        return await Program(settings(box.root, document), trial.store).run()

    assert asyncio.run(swapped()) == FAILED
    assert message(box.root).reason == "StoreRefused"


class DeadStore(MemoryStore):
    async def get(self, key: str) -> bytes:
        raise StoreError(f"{key}: connection refused")


def test_a_store_out_of_reach(box_and_trial: tuple[Box, Stand]) -> None:
    box, trial = box_and_trial
    document = relaxed(trial, TrialKind.ATTEMPT)
    code = asyncio.run(Program(settings(box.root, document), DeadStore()).run())
    assert code == STORE_UNREACHABLE
    assert message(box.root).reason == "StoreUnreachable"
