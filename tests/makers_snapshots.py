"""Workspaces for tests: made from descriptions, read back independently of the code under test."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stayer_evaluator.records.queue import EpisodeCursor, PathReport, SnapshotEntry, Writer
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots.base import NO_BASE, Base
from stayer_evaluator.snapshots.collect import Collected, Collector, PackStore
from stayer_evaluator.snapshots.excludes import Excludes, Filter
from stayer_evaluator.snapshots.index import RACY_WINDOW_NS
from stayer_evaluator.snapshots.manifest import Tree
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner, restore
from stayer_evaluator.snapshots.take import Snapshotter
from stayer_evaluator.snapshots.walk import Limits
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import QueueWriter
from stayer_evaluator.storage.store import ObjectStore

KEYS = TrialKeys("runs/lab/demo-1a2b3c4d/demo-0123456789/")
EVERYTHING = Excludes(names=frozenset(), suffixes=())
EPISODE = EpisodeCursor()


@dataclass
class BeforeLooking:
    """What `collect` and `Recorder.take` do first. What has just been written is read otherwise
    than what is old.
    """

    hold_still: bool = False


before_looking = BeforeLooking()


@dataclass(frozen=True)
class F:
    """A file."""

    content: bytes = b""
    mode: int = 0o644

    def __repr__(self) -> str:
        """Short: it is printed when a test fails, and Hypothesis warns of what is too long."""
        content, size = self.content, len(self.content)
        shown = repr(content) if size < 80 else f"{content[:8]!r} * {size / 8:g}"
        return f"F({shown}, {self.mode:#o})"


@dataclass(frozen=True)
class L:
    """A link."""

    target: bytes


@dataclass(frozen=True)
class D:
    """A directory."""

    entries: dict[bytes, Any] = field(default_factory=dict)
    mode: int = 0o755


def build(root: Path, tree: D) -> None:
    """Make the entries of `tree` in the existing directory `root`."""
    for name, item in tree.entries.items():
        inner = root / os.fsdecode(name)
        match item:
            case F(content, mode):
                inner.write_bytes(content)
                inner.chmod(mode)
            case L(target):
                os.symlink(target, os.fsencode(inner))  # noqa: PTH211 (a Path would tidy it up)
            case D(_, mode):
                inner.mkdir()
                build(inner, item)
                inner.chmod(mode)


def picture(root: Path) -> dict[bytes, tuple[str, int, bytes]]:
    """Every path below `root` with type, mode and content or target, links not followed."""
    found: dict[bytes, tuple[str, int, bytes]] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = os.fsencode(path.relative_to(root))
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(os.fsencode(path))  # noqa: PTH115 (a Path would tidy it up)
                found[key] = ("link", 0o777, target)
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("dir", mode, b"")
            elif stat.S_ISREG(status.st_mode):
                found[key] = ("file", mode, path.read_bytes())
            else:
                found[key] = ("special", mode, b"")
    return found


# Bytes that names are made of: letters, what shells and JSON trip over, and broken UTF-8.
_NAME = st.one_of(
    st.text("abAB.-_ \n\\\"'*?é\u202e", min_size=1, max_size=6).map(os.fsencode),
    st.binary(min_size=1, max_size=5).map(lambda raw: raw.replace(b"/", b"-").replace(b"\0", b"+")),
    st.sampled_from([b"-rf", b"b64:x", b"b64:", b"...", b"a\nb", b"\xff\xfe", "é".encode()]),
).filter(
    # What a snapshot leaves out has tests of its own; Hypothesis takes such names from the code.
    lambda name: name not in (b".", b"..") and not Excludes().leaves_out("", os.fsdecode(name))
)
_FILE_MODE = st.sampled_from([0o644, 0o755, 0o400, 0o600, 0o777])
_CONTENT = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"", b"same"]),
    st.just(70_000).map(lambda size: b"x" * size),
    st.integers(0, 3).map(lambda n: bytes([n]) * (1024 * 1024 + n)),
)
files = st.builds(F, _CONTENT, _FILE_MODE)
links = st.builds(
    L, st.one_of(_NAME, st.sampled_from([b"/etc/passwd", b"../../x", b"a/b", b"\xff"]))
)


def folders(children: st.SearchStrategy[Any]) -> st.SearchStrategy[D]:
    modes = st.sampled_from([0o755, 0o700, 0o777, 0o500 if os.getuid() == 0 else 0o700])
    return st.builds(D, st.dictionaries(_NAME, children, max_size=4), modes)


trees = st.builds(
    D,
    st.dictionaries(
        _NAME, st.recursive(st.one_of(files, links), folders, max_leaves=8), max_size=5
    ),
)


def collect(
    root: Path,
    store: ObjectStore | None = None,
    *,
    excludes: Filter = EVERYTHING,
    limits: Limits | None = None,
    settled: bool = True,
) -> Collected:
    """One look at `root`; settled: all of it is durable then."""
    if before_looking.hold_still:
        hold_still()

    async def go() -> Collected:
        collector = Collector(root, excludes, limits)
        try:
            collected = await collector.collect(PackStore(store or MemoryStore(), KEYS.pack))
            assert collected is not None
            if settled:
                await collector.settle(collected)
            return collected
        finally:
            collector.close()

    return asyncio.run(go())


def hold_still() -> None:
    """Let what was written become so old that its times would tell of any later change."""
    time.sleep(1.5 * RACY_WINDOW_NS / 1e9)


def problems(reports: tuple[PathReport, ...]) -> dict[str, str]:
    return {report.path: report.problem for report in reports}


async def restored(
    store: ObjectStore, tree: Tree, directory: Path, owner: Owner | None = None
) -> Path:
    """The tree, restored below `directory` from what the store holds."""
    out = directory / "restored"
    out.mkdir(exist_ok=True)
    cache = PackCache(directory / "packs")
    await cache.fetch(store, tree)
    try:
        restore(tree, cache, out, owner)
    finally:
        cache.close()
    return out


class Recorder:
    """What a recorder does with snapshots, without episodes."""

    def __init__(self, root: Path, store: ObjectStore, base: Base = NO_BASE) -> None:
        self.root = root
        self.store = store
        self.base = base
        self.snapshotter: Snapshotter | None = None

    async def begin(self, incarnation: int = 1, settings: SnapshotSettings | None = None) -> None:
        writer = Writer(incarnation=incarnation, nonce=f"nonce-{incarnation}")
        queue = await QueueWriter.begin(self.store, KEYS, writer, 1.0)
        settings = settings or SnapshotSettings()
        self.snapshotter = Snapshotter(self.root, queue, self.base, settings)

    async def take(self, **options: bool) -> SnapshotEntry | None:
        assert self.snapshotter is not None
        if before_looking.hold_still:
            hold_still()
        return await self.snapshotter.take(EPISODE, 2.0, **options)

    def close(self) -> None:
        if self.snapshotter is not None:
            self.snapshotter.close()
