"""Trials for the adjudicator: a pushed task, a queue, a session over a real runner."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from makers_runner import Box
from makers_tasks import IMAGE
from stayer_evaluator.adjudication.ports import Places
from stayer_evaluator.adjudication.reporting import LatestProgress
from stayer_evaluator.adjudication.runner_jobs import RunnerJobs
from stayer_evaluator.adjudication.session import Outcome, Session, run_session
from stayer_evaluator.episode.jobs import JobClient
from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor, RoundRecord, Writer
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.records.trial import (
    AgentSettings,
    SnapshotSettings,
    TaskReference,
    Timeouts,
    TrialDocument,
)
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.snapshots.base import read_base
from stayer_evaluator.snapshots.take import Snapshotter
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import QueueReader, QueueWriter
from stayer_evaluator.tasks.push import plan_push, push

AGENT = Writer(incarnation=1, nonce="agent")


@dataclass
class Stand:
    """A box with a pushed task and a store."""

    box: Box
    task: Path
    record: TaskRecord
    store: MemoryStore
    settings: SnapshotSettings = field(
        default_factory=lambda: SnapshotSettings(every_snapshot=True)
    )
    test_seconds: int = 60

    @property
    def prefix(self) -> str:
        return "runs/ns/run-uid/trial/"

    @property
    def keys(self) -> TrialKeys:
        return TrialKeys(self.prefix)

    def document(self, kind: TrialKind) -> TrialDocument:
        return TrialDocument(
            kind=kind,
            namespace="ns",
            run="run",
            run_uid="uid",
            trial="trial",
            prefix=self.prefix if kind is TrialKind.ATTEMPT else "runs/ns/run-uid/inventory/",
            task=TaskReference(
                name=self.record.name, digest=self.record.digest, image=self.record.image
            ),
            agent=AgentSettings(name="tester", harness="scripted"),
            timeouts=Timeouts(test_seconds=self.test_seconds),
            snapshots=self.settings,
        )

    def session(self, kind: TrialKind, nonce: str) -> Session:
        root = self.box.root
        return Session(
            document=self.document(kind),
            store=self.store,
            jobs=RunnerJobs(JobClient(self.box.jobs, self.box.out, patience=15), 30.0),
            places=Places(
                workspace=root / "workspace",
                suite=root / "suite",
                home=root / "home",
                packs=root / "state/packs",
            ),
            writer=Writer(incarnation=1, nonce=nonce),
            progress=LatestProgress("trial", 1),
            runner=str(root / "runner"),
            new_reader=lambda store, keys: QueueReader(store, keys, shortest_wait=0.01),
        )

    async def inventory(self, nonce: str = "inv") -> Outcome:
        """The gold run, on a workspace seeded from the task's base."""
        seed(self.task / "base", self.box.root / "workspace")
        return await run_session(self.session(TrialKind.INVENTORY, nonce))

    async def adjudicate(self, nonce: str = "adj") -> Outcome:
        return await run_session(self.session(TrialKind.ATTEMPT, nonce))

    async def episode(
        self,
        steps: Sequence[Callable[[Path], None]],
        failure: FailureMode = FailureMode.NONE,
    ) -> None:
        """What an agent would leave: the seeded workspace, then one snapshot after each step."""
        tree = self.box.root / "agent-workspace"
        tree.mkdir(exist_ok=True)
        seed(self.task / "base", tree)
        queue = await QueueWriter.begin(self.store, self.keys, AGENT, 1000.0)
        base = await read_base(self.store, TaskKeys(self.record.digest))
        snapshots = Snapshotter(tree, queue, base, self.settings)
        cursor = EpisodeCursor()
        try:
            await snapshots.take(cursor, 1001.0)
            for number, step in enumerate(steps):
                step(tree)
                await snapshots.take(cursor.model_copy(update={"step": number}), 1002.0 + number)
        finally:
            snapshots.close()
        done = RoundRecord(number=1, seconds=1, failure_mode=failure)
        await queue.append(
            lambda number: EndEntry(
                number=number,
                writer=AGENT,
                time=2000.0,
                failure_mode=failure,
                episode=EpisodeCursor(rounds=(done,)),
            )
        )

    def verdicts(self) -> list[Verdict]:
        keys = [k for k in sorted(self.store.objects) if k.startswith(f"{self.prefix}verdicts/")]
        return [Verdict.from_bytes(self.store.objects[k]) for k in keys if ".try" not in k]


def stand(box: Box, task: Path, **options: object) -> Stand:
    """The task pushed into a new store."""
    store = MemoryStore()
    record = asyncio.run(push(store, plan_push(task, IMAGE, "tasksets/test")))
    return Stand(box, task, record, store, **options)  # type: ignore[arg-type]


def seed(source: Path, target: Path) -> None:
    """Fill the folder with a copy of another, owned like an agent's workspace."""
    for child in target.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in (target, *target.rglob("*")):
        shutil.chown(path, 10001, 10001)
