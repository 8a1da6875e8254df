"""Makers for recorder tests: a small task, its documents, and a pod without a cluster.

`Pod` plays the kubelet: seed, initial commit, recorder, restore, and the real runner as PID 1 of a
PID namespace of its own (root is needed, as in CI).
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from makers_runner import runner_program
from stayer_evaluator.episode.config import Places, RecorderSettings, TaskSide, Timing
from stayer_evaluator.episode.initial_commit import make_initial_commit
from stayer_evaluator.episode.main import Program
from stayer_evaluator.episode.restore import run_restore
from stayer_evaluator.episode.trace import decode_segment
from stayer_evaluator.records.queue import EndEntry, EpochEntry, SnapshotEntry
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.task import TaskRecord, UnitRecord
from stayer_evaluator.records.trace import TraceEvent
from stayer_evaluator.records.trial import (
    AgentSettings,
    LoopProfile,
    SnapshotSettings,
    TaskReference,
    Timeouts,
    TrialDocument,
)
from stayer_evaluator.snapshots.base import NO_BASE
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectStore
from stayer_evaluator.tasks.bundle import pack_files

DIGEST = "d" * 64
PREFIX = "runs/ns/run-12345678/trial/"
UNITS = ("parser", "engine", "report")
UID = 10001

BASE = {
    "README.md": "a calculator\n",
    "src/parser.py": "def parse(text):\n    raise NotImplementedError\n",
    "src/engine.py": "def run(tree):\n    raise NotImplementedError\n",
    "requirements/parser.yaml": "id: parser\n",
    "requirements/engine.yaml": "id: engine\n",
    "requirements/report.yaml": "id: report\n",
}

GOLD = {
    "parser": """\
diff --git a/src/parser.py b/src/parser.py
--- a/src/parser.py
+++ b/src/parser.py
@@ -1,2 +1,2 @@
 def parse(text):
-    raise NotImplementedError
+    return text.split()
""",
    "engine": """\
diff --git a/src/engine.py b/src/engine.py
--- a/src/engine.py
+++ b/src/engine.py
@@ -1,2 +1,2 @@
 def run(tree):
-    raise NotImplementedError
+    return sum(map(int, tree))
""",
    "report": """\
diff --git a/src/report.py b/src/report.py
new file mode 100755
--- /dev/null
+++ b/src/report.py
@@ -0,0 +1,2 @@
+def report(value):
+    return f"= {value}"
""",
}


def make_task(**changes: Any) -> TaskRecord:
    fields: dict[str, Any] = {
        "name": "calc",
        "digest": DIGEST,
        "tree_digest": "e" * 64,
        "image": "registry/calc@sha256:0",
        "instruction": "Write a calculator.",
        "units": tuple(
            UnitRecord(id=unit, layer=layer, has_tests=True) for layer, unit in enumerate(UNITS)
        ),
        "reference_order": UNITS,
        "depth": 3,
    }
    return TaskRecord(**{**fields, **changes})


def make_document(
    harness: str = "oracle", script: str | None = None, **changes: Any
) -> TrialDocument:
    fields: dict[str, Any] = {
        "namespace": "ns",
        "run": "run",
        "run_uid": "12345678-0",
        "trial": "trial",
        "prefix": PREFIX,
        "task": TaskReference(name="calc", digest=DIGEST, image="registry/calc@sha256:0"),
        "agent": AgentSettings(name=harness, harness=harness, script=script),
        "loop": LoopProfile(outer_loop_count=1),
        "timeouts": Timeouts(agent_seconds=120),
        "snapshots": SnapshotSettings(between_steps_only=True),
        "user_namespaces": "off",
        "grants": ("gold",),
    }
    return TrialDocument(**{**fields, **changes})


def gold_files(gold: dict[str, str] | None = None) -> list[tuple[str, bytes, bool]]:
    found = GOLD if gold is None else gold
    return [(f"gold_patches/{unit}.diff", text.encode(), False) for unit, text in found.items()]


def make_store(document: TrialDocument, task: TaskRecord | None = None) -> MemoryStore:
    keys = TaskKeys(DIGEST)
    suite = [("tests/parser/test_parser.py", b"def test(): pass\n", False)]
    return MemoryStore(
        {
            TrialKeys(PREFIX).document: document.to_bytes(),
            keys.record: (task or make_task()).to_bytes(),
            keys.gold: pack_files(gold_files()),
            keys.suite: pack_files(suite),
        }
    )


@dataclass
class Pod:
    """The directories of one pod, and what the kubelet does with them."""

    root: Path
    settings: RecorderSettings
    base: dict[str, str]
    runners: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.settings.places.workspace

    @property
    def home(self) -> Path:
        return self.settings.places.home

    def seed(self) -> None:
        """What the init containers before the recorder do."""
        for name, text in self.base.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        make_initial_commit(self.workspace, UID, UID)
        subprocess.run(["chown", "-R", f"{UID}:{UID}", self.workspace, self.home], check=True)

    def restore(self) -> int | None:
        """What the init container after the recorder does."""
        return run_restore(self.settings.places.state, self.workspace, self.home, Owner(UID, UID))

    def start_runner(self) -> subprocess.Popen[bytes]:
        """The task container."""
        places = self.settings.places
        command = [
            "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
            self.settings.task_side.runner, "serve",
            "--jobs", str(places.jobs), "--out", str(places.out),
        ]  # fmt: skip
        runner = subprocess.Popen(command, env={"PATH": os.environ["PATH"], "IMAGE": "yes"})
        self.runners.append(runner)
        return runner

    def termination(self) -> TerminationMessage:
        return TerminationMessage.from_bytes(self.settings.places.termination_log.read_bytes())

    def stop(self) -> None:
        for runner in self.runners:
            runner.kill()
            runner.wait()


@contextlib.contextmanager
def make_pod(
    document: TrialDocument,
    incarnation: int = 1,
    *,
    timing: Timing | None = None,
    base: dict[str, str] | None = None,
    **settings: Any,
) -> Iterator[Pod]:
    """A pod of the trial in a directory that the agent's uid can reach."""
    root = Path(tempfile.mkdtemp(prefix="stayer-pod-"))
    root.chmod(0o755)
    names = ("jobs", "out", "state", "workspace", "home", "suite")
    for name in names:
        (root / name).mkdir()
    (root / "token").write_text("token")
    runner = root / "runner"
    shutil.copy(runner_program(), runner)
    places = Places(
        **{name: root / name for name in names},
        token=root / "token",
        termination_log=root / "termination-log",
    )
    quick = Timing(
        isolation_patience=1,
        runner_patience=30,
        result_patience=30,
        store_patience=10,
        drain_patience=20,
        trace_interval=0.2,
        resume_interval=0.5,
        retry_pause=0.05,
    )
    pod = Pod(
        root,
        RecorderSettings(
            **{
                "trial": "trial",
                "prefix": PREFIX,
                "incarnation": incarnation,
                "trial_sha256": hashlib.sha256(document.to_bytes()).hexdigest(),
                "relay_url": "",
                "host": "127.0.0.1",
                "port": 0,
                "places": places,
                "timing": timing or quick,
                "task_side": TaskSide(
                    runner=str(runner),
                    workspace=str(root / "workspace"),
                    home=str(root / "home"),
                    suite=str(root / "suite"),
                ),
                **settings,
            }
        ),
        BASE if base is None else base,
    )
    try:
        yield pod
    finally:
        pod.stop()
        shutil.rmtree(root, ignore_errors=True)


async def play(pod: Pod, store: ObjectStore, program: Program | None = None) -> int:
    """A whole life of the pod; the recorder's exit status."""
    pod.seed()
    program = program or Program(pod.settings, store)
    life = asyncio.ensure_future(program.run())
    if await started(program, life):
        pod.restore()
        pod.start_runner()
    code = await life
    await program.server.close()
    return code


async def play_until(pod: Pod, store: ObjectStore, file: Path) -> None:
    """A life that is cut off as soon as the agent has written the file; the container goes on."""
    pod.seed()
    program = Program(pod.settings, store)
    life = asyncio.ensure_future(program.run())
    assert await started(program, life)
    pod.restore()
    pod.start_runner()
    await appears(file, life)
    life.cancel()
    await asyncio.wait((life,))
    await program.server.close()


async def appears(file: Path, life: "asyncio.Future[int]") -> None:
    """Wait for a file that the agent writes, or for the recorder's end."""
    while not file.exists() and not life.done():  # noqa: ASYNC110, ASYNC240 (a file, no event)
        await asyncio.sleep(0.01)


async def started(program: Program, life: "asyncio.Future[int]") -> bool:
    """Wait for /started; False when the recorder ended before."""
    while not program.server.started and not life.done():  # noqa: ASYNC110 (two conditions)
        await asyncio.sleep(0.01)
    return program.server.started


async def entries(store: ObjectStore) -> AsyncIterator[EpochEntry | SnapshotEntry | EndEntry]:
    """The trial's queue."""
    reader = QueueReader(store, TrialKeys(PREFIX))
    while (entry := await reader.poll()) is not None:
        yield entry


def read_queue(store: ObjectStore) -> list[EpochEntry | SnapshotEntry | EndEntry]:
    async def collect() -> list[EpochEntry | SnapshotEntry | EndEntry]:
        return [entry async for entry in entries(store)]

    return asyncio.run(collect())


def snapshots(store: ObjectStore) -> list[SnapshotEntry]:
    return [entry for entry in read_queue(store) if isinstance(entry, SnapshotEntry)]


def read_trace(store: MemoryStore) -> list[TraceEvent]:
    """All events of all writers, by writer and number."""
    keys = sorted(key for key in store.objects if key.startswith(f"{PREFIX}trace/"))
    return [event for key in keys for event in decode_segment(store.objects[key])]


async def tree_of(store: ObjectStore, entry: SnapshotEntry) -> dict[str, str]:
    """Files of a snapshot with their text."""
    tree = entry_tree(entry, NO_BASE)
    with tempfile.TemporaryDirectory() as scratch:
        packs = PackCache(Path(scratch))
        await packs.fetch(store, tree)
        found = {
            os.fsdecode(path): b"".join(packs.read(piece) for piece in node.pieces).decode()
            for path, node in tree.items()
            if node.type == "file"
        }
        packs.close()
    return found
