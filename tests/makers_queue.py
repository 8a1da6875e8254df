"""A trial whose runner is in memory: a unit passes when the workspace says so.

In the workspace the file `<unit>` holds what its test run does: `pass`, `fail`, `hang`, `kill` (the
runner is gone), `stop` (the pod is ending), `oom`, `lie` (its run breaks the canaries after it).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stayer_evaluator.adjudication.ports import Done, Places
from stayer_evaluator.adjudication.reporting import LatestProgress
from stayer_evaluator.adjudication.session import Outcome, Session, run_session
from stayer_evaluator.adjudication.worker import Clock
from stayer_evaluator.episode.jobs import RunnerLost
from stayer_evaluator.records.jobs import Job, JobResult
from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor, RoundRecord, Writer
from stayer_evaluator.records.task import Inventory, InventoryUnit, TaskRecord, UnitRecord
from stayer_evaluator.records.trial import (
    AgentSettings,
    SnapshotSettings,
    TaskReference,
    Timeouts,
    TrialDocument,
)
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.snapshots.base import read_base, write_base
from stayer_evaluator.snapshots.excludes import Excludes
from stayer_evaluator.snapshots.take import Snapshotter
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import QueueReader, QueueWriter
from stayer_evaluator.storage.store import ObjectStore
from stayer_evaluator.tasks.bundle import pack_files
from stayer_evaluator.tasks.graph import build_graph

DIGEST = "d" * 64
PREFIX = "runs/ns/run-uid/trial/"
AGENT = Writer(incarnation=1, nonce="agent")
EVERY = SnapshotSettings(every_snapshot=True)
Tree = dict[str, str]


@dataclass
class MemoryRunner:
    """A `Jobs` that runs nothing; it reads the workspace that was restored for it."""

    places: Places
    broken_canaries: int = 0
    jobs: list[Job] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    lies: bool = False

    async def run(self, job: Job, stdin: bytes | None = None) -> Done:
        self.jobs.append(job)
        if job.kind == "wipe":
            self.lies = False
            root = self.places.workspace.parent
            assert all(Path(path).parent == root for path in job.paths), "not ours to wipe"
            for path in job.paths:
                wipe(Path(path))
            return self._done(job, "")
        target = Path(job.argv[-1])
        if re.fullmatch("c[0-9a-f]{12}", target.name):
            return self._canary(job, target)
        return self._unit(job, target.name)

    def _canary(self, job: Job, folder: Path) -> Done:
        [file] = folder.glob("test_*.py")
        honest = self.broken_canaries <= 0 and not self.lies
        self.broken_canaries -= 1
        case = f"{self._inside(folder)}/{file.name}::{file.stem}"
        if not honest:
            return self._done(job, f"{case}_holds PASSED\n{case}_breaks PASSED\n== 2 passed ==\n")
        text = f"{case}_holds PASSED\n{case}_breaks FAILED\n== 1 failed, 1 passed ==\n"
        return self._done(job, text, exit_code=1)

    def _unit(self, job: Job, unit: str) -> Done:
        self.units.append(unit)
        said = self.places.workspace / unit
        match said.read_text().split()[0] if said.is_file() else "fail":
            case "pass":
                return self._done(job, f"{unit}::a PASSED\n{unit}::b PASSED\n== 2 passed ==\n")
            case "hang":
                return self._done(job, "", exit_code=None, timed_out=True)
            case "oom":
                return self._done(job, "", exit_code=None, signal=9, oom_kills=1)
            case "stop":
                return self._done(job, "", exit_code=None, stopped=True)
            case "kill":
                raise RunnerLost("gone")
            case "lie":
                self.lies = True
        text = f"{unit}::a PASSED\n{unit}::b FAILED\n== 1 failed, 1 passed ==\n"
        return self._done(job, text, exit_code=1)

    def _inside(self, path: Path) -> str:
        return str(path.relative_to(self.places.suite))

    def _done(self, job: Job, log: str, **facts: object) -> Done:
        result = {"id": job.id, "kind": job.kind, "started": 0.0, "ended": 1.0, "exit_code": 0,
                  "runner": "memory", **facts}  # fmt: skip
        return Done(result=JobResult.model_validate(result), log=log.encode())


@dataclass
class Trial:
    """Units of a task, and the folders of one adjudicator pod."""

    root: Path
    units: tuple[str, ...] = ("a", "b", "c")
    edges: tuple[tuple[str, str], ...] = (("a", "b"),)
    gold_lines: int = 4
    settings: SnapshotSettings = field(
        default_factory=lambda: SnapshotSettings(every_snapshot=True)
    )
    timeouts: Timeouts = field(default_factory=Timeouts)
    store: MemoryStore = field(default_factory=MemoryStore)
    runner: MemoryRunner = field(init=False)
    places: Places = field(init=False)
    progress: LatestProgress = field(default_factory=lambda: LatestProgress("trial", 1))

    def __post_init__(self) -> None:
        for name in ("workspace", "suite", "home", "tmp", "state", "agent"):
            (self.root / name).mkdir(parents=True)
        self.places = Places(
            workspace=self.root / "workspace",
            suite=self.root / "suite",
            home=self.root / "home",
            packs=self.root / "state/packs",
            wiped=(str(self.root / "tmp"),),
        )
        self.runner = MemoryRunner(self.places)
        asyncio.run(self._push())

    async def _push(self) -> None:
        keys, graph = TaskKeys(DIGEST), build_graph(self.units, self.edges)
        base = await write_base(self.store, keys, self.root / "agent", Excludes())
        units = tuple(
            UnitRecord(id=u, layer=graph.layers[u], has_tests=True, gold_lines=self.gold_lines,
                       prerequisites=graph.prerequisites[u])
            for u in graph.order
        )  # fmt: skip
        record = TaskRecord(
            name="task", digest=DIGEST, tree_digest="", image="image", instruction="do",
            units=units, reference_order=graph.order, depth=graph.depth,
        )  # fmt: skip
        inventory = Inventory(
            task="task", digest=DIGEST, accepted=True, suite="pytest", interpreter="/bin/python3",
            base_manifest=base.sha256,
            units={u: InventoryUnit(cases=(f"{u}::a", f"{u}::b"), selectable=True, finder="folder")
                   for u in self.units},
        )  # fmt: skip
        suite = [(f"tests/{u}/test_{u}.py", b"", False) for u in self.units]
        await self.store.create(keys.record, record.to_bytes())
        await self.store.create(keys.inventory, inventory.to_bytes())
        await self.store.create(keys.suite, pack_files(suite))

    def document(self) -> TrialDocument:
        return TrialDocument(
            namespace="ns", run="run", run_uid="uid", trial="trial", prefix=PREFIX,
            task=TaskReference(name="task", digest=DIGEST, image="image"),
            agent=AgentSettings(name="tester", harness="scripted"),
            timeouts=self.timeouts, snapshots=self.settings, kind=TrialKind.ATTEMPT,
        )  # fmt: skip

    async def queue(
        self, trees: Sequence[Tree], *, end: bool = True, mode: FailureMode = FailureMode.NONE
    ) -> None:
        """Append snapshots of these trees (the seeded one first, if none was), then the end."""
        queue = await QueueWriter.begin(self.store, TrialKeys(PREFIX), AGENT, 1.0)
        agent = self.root / "agent"
        base = await read_base(self.store, TaskKeys(DIGEST))
        snapshots = Snapshotter(agent, queue, base, self.settings)
        try:
            if queue.last_snapshot is None:
                await snapshots.take(EpisodeCursor(), 2.0)
            for tree in trees:
                fill(agent, tree)
                await snapshots.take(EpisodeCursor(), 3.0, force=True)
        finally:
            snapshots.close()
        if end:
            await self.end(queue, mode)

    async def end(self, queue: QueueWriter, mode: FailureMode = FailureMode.NONE) -> None:
        done = RoundRecord(number=1, seconds=1, failure_mode=mode)
        await queue.append(
            lambda number: EndEntry(number=number, writer=AGENT, time=9.0, failure_mode=mode,
                                    episode=EpisodeCursor(rounds=(done,)))
        )  # fmt: skip

    def session(
        self, nonce: str = "n1", store: ObjectStore | None = None, clock: Clock | None = None
    ) -> Session:
        return Session(
            document=self.document(),
            store=store or self.store,
            jobs=self.runner,
            places=self.places,
            writer=Writer(incarnation=1, nonce=nonce),
            progress=self.progress,
            clock=clock or Clock(wall=lambda: 100.0, steady=lambda: 0.0),
            new_reader=lambda store, keys: QueueReader(store, keys, shortest_wait=0.001),
        )

    def adjudicate(self, nonce: str = "n1", store: ObjectStore | None = None) -> Outcome:
        return asyncio.run(run_session(self.session(nonce, store)))

    def verdicts(self) -> list[Verdict]:
        keys = sorted(self.store.objects)
        found = [k for k in keys if k.startswith(f"{PREFIX}verdicts/") and ".try" not in k]
        return [Verdict.from_bytes(self.store.objects[key]) for key in found]

    def states(self) -> list[str]:
        """One word a verdict: the first letter of every unit's state, S sealed, ! invalid."""
        return ["".join(letter(v, unit) for unit in self.units) for v in self.verdicts()]


def letter(verdict: Verdict, unit: str) -> str:
    letters = {"sealed": "S", "invalid": "!", "error": "E", "timeout": "T"}
    state = verdict.results[unit].state.value
    return letters.get(state, state[0])


def fill(folder: Path, tree: Tree) -> None:
    """Make the folder hold exactly the tree's files."""
    wipe(folder)
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def passing(*units: str, **others: str) -> Tree:
    """A tree in which these units pass, with a patch each."""
    patches = {f"requirement_patches/{unit}.diff": "x\n" for unit in units}
    return {**dict.fromkeys(units, "pass\n"), **patches, **{u: f"{s}\n" for u, s in others.items()}}


def of_type(events: Iterable[dict[str, object]], kind: str) -> list[dict[str, object]]:
    return [event for event in events if event["type"] == kind]
