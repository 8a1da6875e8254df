"""Walk, read and upload until the tree holds still: the shell around `walk` and `reading`."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from stayer_evaluator.records.queue import PathProblem, PathReport
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.directories import OPEN_DIRECTORY
from stayer_evaluator.snapshots.excludes import Filter
from stayer_evaluator.snapshots.index import RACY_WINDOW_NS, Index, Seen
from stayer_evaluator.snapshots.manifest import Node, Piece, Tree
from stayer_evaluator.snapshots.ordered_walk import OrderedWalk
from stayer_evaluator.snapshots.pack import Pack
from stayer_evaluator.snapshots.reading import Content, Reading
from stayer_evaluator.snapshots.walk import Limits, Overflow, Scan, Walk, moved
from stayer_evaluator.storage.pause import collector_paused
from stayer_evaluator.storage.store import ObjectStore

T = TypeVar("T")
PASSES = 3
"""Readings of one collection: the tree is taken as it is after the last, however it moves."""
MAX_REPORTS = 1000
UPLOADS = 2
ENCODING, ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""As os.fsencode, which takes twice as long for the same."""
fast_tuple = tuple.__new__
"""Makes a named tuple of all its fields in half the time of its own constructor."""
WORKERS = max(2, min(4, os.cpu_count() or 2))


@dataclass(slots=True)
class PackStore:
    """Where packs go, and how much went there."""

    store: ObjectStore
    key: Callable[[str], str]
    """Object key of a pack by its digest."""
    bytes: int = 0
    packs: int = 0

    async def create(self, pack: Pack) -> None:
        """Make a pack durable. Raises StoreError."""
        await self.store.create(self.key(pack.digest), pack.data)
        self.bytes += len(pack.data)
        self.packs += 1


@dataclass(slots=True)
class Collected:
    """A tree. Its contents are durable once `Collector.settle` has returned."""

    tree: Tree
    reports: tuple[PathReport, ...]
    bytes_read: int
    index: Index
    pieces: dict[str, Piece]
    upload: "_Uploads"


class Collector:
    """Turns the directory `root` into trees, reading only what may have changed since last time.

    `known` maps contents that are durable already to where they lie.
    """

    def __init__(
        self,
        root: Path,
        excludes: Filter,
        limits: Limits | None = None,
        known: dict[str, Piece] | None = None,
    ) -> None:
        self.root = root
        self.known = dict(known or {})
        self._excludes = excludes
        self._limits = limits or Limits()
        self._index: Index = {}
        self._root: int | None = None
        # One thread drives: what a cancelled call left running ends before the next call looks.
        self._driver = ThreadPoolExecutor(1, thread_name_prefix="collect")
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="snapshot")

    def close(self) -> None:
        """End the threads, then let go of the root."""
        self._driver.shutdown()
        self._pool.shutdown()
        if self._root is not None:
            os.close(self._root)
            self._root = None

    async def collect(self, packs: PackStore, *, reread: bool = False) -> Collected | None:
        """The tree as it is now, or None when it cannot have changed since the last settled one.

        New contents are on their way to `packs` when this returns; call `settle` before anything
        refers to them. With `reread` nothing is trusted: a store into mapped memory may change a
        file without changing its times. Raises StoreError, OSError when `root` cannot be listed;
        the next call then starts from the last settled state.
        """
        if self._root is None:
            self._root = os.open(self.root, OPEN_DIRECTORY)
        uploads = _Uploads(packs)
        try:
            return await self._collect(self._root, {} if reread else self._index, uploads)
        except BaseException:
            uploads.cancel()
            raise

    async def settle(self, collected: Collected) -> None:
        """Wait until all of it is durable, then build on it. Raises StoreError."""
        await collected.upload.finish()
        self.known.update(collected.pieces)
        self._index = collected.index

    async def _collect(self, root: int, index: Index, uploads: "_Uploads") -> Collected | None:
        pieces: dict[str, Piece] = {}
        bytes_read = 0
        changed = False
        for again in range(1, PASSES + 1):
            scan, reading = await self._look(root, index, pieces, uploads)
            bytes_read += reading.bytes
            index = scan.index
            with collector_paused(count_as_old=True):
                self._take_over(scan, reading, pieces, last=again == PASSES)
            if not scan.unread and not scan.changed:
                break
            changed = True
            if again < PASSES and not await self._must_look_again(root, scan, reading):
                break
        if not changed:
            self._index = index
            return None
        with collector_paused(count_as_old=True):
            tree = tree_of(index)
        return Collected(tree, reports_of(scan), bytes_read, index, pieces, uploads)

    async def _look(
        self, root: int, index: Index, pieces: dict[str, Piece], uploads: "_Uploads"
    ) -> tuple[Scan, Reading]:
        """Walk and read once, uploading on the way."""
        for kind in (Walk, OrderedWalk):
            walk = kind(index, self._excludes, self._limits)
            known = self.known.keys() | pieces.keys()
            reading = Reading(root, walk.scan, self._limits.bytes, known, self._pool, WORKERS)
            try:
                await self._upload_all(reading.packs(walk.steps(root)), pieces, uploads)
            except Overflow:
                continue
            return walk.scan, reading
        raise AssertionError("an ordered walk keeps within the limits")

    async def _must_look_again(self, root: int, scan: Scan, reading: Reading) -> bool:
        if any(content.moving for content in reading.contents):
            await asyncio.sleep(RACY_WINDOW_NS / 1e9)
            return True
        return await self._drive(lambda: moved(root, scan))

    async def _drive(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._driver, call)

    async def _upload_all(
        self,
        packs: Generator[Future[Pack], None, None],
        pieces: dict[str, Piece],
        uploads: "_Uploads",
    ) -> None:
        def pull() -> Future[Pack] | None:
            with collector_paused(count_as_old=True):
                return next(packs, None)

        def note(pack: Pack) -> None:
            key = uploads.packs.key(pack.digest)
            with collector_paused(count_as_old=True):
                pieces.update(pack.pieces(key))

        unnoted: deque[Future[Pack]] = deque()
        try:
            while (pack := await self._drive(pull)) is not None:
                unnoted.append(pack)
                await uploads.start(pack)
                while unnoted and unnoted[0].done():  # not held any longer than its upload
                    note(unnoted.popleft().result())
        finally:
            self._driver.submit(packs.close)
        while unnoted:
            note(await asyncio.wrap_future(unnoted.popleft()))

    def _take_over(
        self, scan: Scan, reading: Reading, pieces: dict[str, Piece], *, last: bool
    ) -> None:
        """Put what was read in the place of what was asked for."""
        known = self.known
        for listing, name, signature, digest in reading.plain:
            found = (pieces.get(digest) or known[digest],) if digest else ()
            node = fast_tuple(Node, ("file", signature[4] & 0o777, signature[0], None, found))
            listing[name] = fast_tuple(Seen, (signature, signature, node, None, ""))
        for content in reading.contents:
            directory, name, _ = content.file
            listing = scan.index[directory]
            if content.problem == "vanished":
                listing.pop(name, None)
                scan.problems.append((directory + name, "vanished", content.detail))
            else:
                listing[name] = self._seen(content, pieces, last=last)

    def _seen(self, content: Content, pieces: dict[str, Piece], *, last: bool) -> Seen:
        file, signature, soft, hashes, problem, detail = content
        if soft is None:
            return Seen(file.signature, file.signature, None, problem, detail)
        if last and signature is None and problem is None:
            problem, detail = "unstable", "changed just before it was read, again and again"
        found = tuple([pieces.get(digest) or self.known[digest] for digest in hashes])
        node = Node("file", soft[4] & 0o777, soft[0], None, found)
        return Seen(signature, soft, node, problem, detail)


@dataclass(slots=True)
class _Uploads:
    """Packs on their way: two at a time, the next one read meanwhile."""

    packs: PackStore
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, pack: Future[Pack]) -> None:
        while len(self._tasks) >= UPLOADS:
            await self._tasks.pop(0)
        self._tasks.append(asyncio.create_task(self._create(pack)))

    async def _create(self, pack: Future[Pack]) -> None:
        await self.packs.create(await asyncio.wrap_future(pack))

    async def finish(self) -> None:
        while self._tasks:
            await self._tasks.pop(0)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


def tree_of(index: Index) -> dict[bytes, Node]:
    """The tree that an index describes, sorted by path."""
    tree: dict[bytes, Node] = {}
    for directory, listing in index.items():
        parent = os.fsencode(directory)
        for name, seen in listing.items():
            if seen.node is not None:
                tree[parent + name.encode(ENCODING, ERRORS)] = seen.node
    return {path: tree[path] for path in sorted(tree)}


def reports_of(scan: Scan) -> tuple[PathReport, ...]:
    """Every path that is not stored as it is, sorted; beyond MAX_REPORTS only their number."""
    found = sorted({*scan.problems, *_of_paths(scan.index)})
    reports = [
        PathReport(path=names.encode(os.fsencode(path)), problem=problem, detail=detail)
        for path, problem, detail in found[:MAX_REPORTS]
    ]
    if len(found) > MAX_REPORTS:
        last = reports[-1]
        more = f"and {len(found) - MAX_REPORTS} more paths with problems"
        reports[-1] = last.model_copy(update={"detail": f"{last.detail} ({more})".strip()})
    return tuple(reports)


def _of_paths(index: Index) -> Iterator[tuple[str, PathProblem, str]]:
    for directory, listing in index.items():
        for name, (_, _, _, problem, detail) in listing.items():
            if problem is not None:
                yield directory + name, problem, detail
