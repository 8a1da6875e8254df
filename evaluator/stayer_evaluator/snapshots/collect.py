"""Walk, read and upload until the tree holds still: the shell around `walk` and `reading`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from stayer_evaluator.records.queue import PathReport
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.excludes import Filter
from stayer_evaluator.snapshots.index import Index, Problem, Seen
from stayer_evaluator.snapshots.manifest import Node, Piece, Tree
from stayer_evaluator.snapshots.pack import Pack
from stayer_evaluator.snapshots.reading import Content, Reading
from stayer_evaluator.snapshots.walk import OPEN_DIRECTORY, Limits, Scan, walk

T = TypeVar("T")
PASSES = 3
"""Walks of one collection: the tree is taken as it is after the last, however it moves."""
MAX_REPORTS = 1000
WORKERS = max(2, min(4, os.cpu_count() or 2))

Upload = Callable[[Pack], Awaitable[str]]
"""Makes a pack durable and returns its key."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A tree whose contents are all durable."""

    tree: Tree
    reports: tuple[PathReport, ...]
    bytes_read: int
    packs: int
    """Packs uploaded."""


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

    async def collect(self, upload: Upload, *, reread: bool = False) -> Collected | None:
        """The tree as it is now, or None when it cannot have changed since the last call.

        With `reread` nothing is trusted: a store into mapped memory may change a file without
        changing its times. Raises StoreError from `upload`, OSError when `root` cannot be listed;
        the next call then starts from where the last successful one ended.
        """
        if self._root is None:
            self._root = os.open(self.root, OPEN_DIRECTORY)
        root = self._root
        changed = False
        bytes_read = packs = 0
        scan = await self._walk(root, {} if reread else self._index, confirm=False)
        for again in range(1, PASSES + 1):
            if not scan.unread and not scan.changed:
                break
            changed = True
            reading = Reading(root, self.known, self._pool, WORKERS)
            packs += await self._upload_all(reading, scan, upload)
            bytes_read += reading.bytes
            self._settle(scan, reading.contents)
            if again < PASSES:
                scan = await self._walk(root, scan.index, confirm=True)
        self._index = scan.index
        if not changed:
            return None
        return Collected(tree_of(scan.index), reports_of(scan), bytes_read, packs)

    async def _walk(self, root: int, index: Index, *, confirm: bool) -> Scan:
        return await self._drive(
            lambda: walk(root, index, self._excludes, self._limits, confirm=confirm)
        )

    async def _drive(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._driver, call)

    async def _upload_all(self, reading: Reading, scan: Scan, upload: Upload) -> int:
        count = 0
        packs = reading.packs(scan.unread)
        try:
            while (pack := await self._drive(lambda: next(packs, None))) is not None:
                key = await upload(pack)
                self.known.update(pack.pieces(key))
                count += 1
        finally:
            self._driver.submit(packs.close)
        return count

    def _settle(self, scan: Scan, contents: list[Content]) -> None:
        """Put what was read in the place of what was asked for."""
        for content in contents:
            listing = scan.index[content.file.directory]
            if content.problem == "vanished":
                del listing[content.file.name]
                path = content.file.directory + content.file.name
                scan.problems.append((path, "vanished", content.detail))
            else:
                listing[content.file.name] = self._seen(content)

    def _seen(self, content: Content) -> Seen:
        if content.soft is None:
            return Seen(None, content.file.signature, None, content.problem, content.detail)
        pieces = tuple(self.known[digest] for digest in content.hashes)
        node = Node("file", content.soft[4] & 0o777, content.soft[0], pieces=pieces)
        return Seen(content.signature, content.soft, node, content.problem, content.detail)


def tree_of(index: Index) -> dict[bytes, Node]:
    """The tree that an index describes."""
    return {
        os.fsencode(directory + name): seen.node
        for directory, listing in index.items()
        for name, seen in listing.items()
        if seen.node is not None
    }


def reports_of(scan: Scan) -> tuple[PathReport, ...]:
    """Every path that is not stored as it is, sorted; beyond MAX_REPORTS only their number."""
    found = sorted(set(scan.problems) | set(_of_paths(scan.index)))
    reports = [
        PathReport(path=names.encode(os.fsencode(path)), problem=problem, detail=detail)
        for path, problem, detail in found[:MAX_REPORTS]
    ]
    if len(found) > MAX_REPORTS:
        last = reports[-1]
        more = f"and {len(found) - MAX_REPORTS} more paths with problems"
        reports[-1] = last.model_copy(update={"detail": f"{last.detail} ({more})".strip()})
    return tuple(reports)


def _of_paths(index: Index) -> Iterator[tuple[str, Problem, str]]:
    for directory, listing in index.items():
        for name, seen in listing.items():
            if seen.problem is not None:
                yield directory + name, seen.problem, seen.detail
