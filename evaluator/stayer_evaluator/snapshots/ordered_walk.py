"""The look at a tree beyond its limits: what is left out is decided by name, not by chance."""

import heapq
import os
from collections.abc import Iterable
from dataclasses import dataclass

from stayer_evaluator.snapshots.excludes import ALWAYS_KEPT, Filter
from stayer_evaluator.snapshots.index import Index, Listing, Seen
from stayer_evaluator.snapshots.walk import Limits, Unread, Walk

KEPT_ENTRIES = 10_000
KEPT_BYTES = 64 * 1024**2
"""What ALWAYS_KEPT may hold besides the limits: a full workspace must not crowd it out."""


@dataclass(slots=True)
class _Budget:
    entries: int
    bytes: int


class OrderedWalk(Walk):
    """Lists by name and leaves out what is beyond the limits."""

    looks_at_new = True

    def __init__(self, index: Index, excludes: Filter, limits: Limits) -> None:
        super().__init__(index, excludes, limits)
        self.rest = _Budget(limits.files, limits.bytes)
        self.kept = _Budget(KEPT_ENTRIES, KEPT_BYTES)

    def _overflow(self) -> None:
        """Expected here: `_close` deals with it."""

    def _arrange(
        self, directory: str, found: Iterable[os.DirEntry[str]]
    ) -> Iterable[os.DirEntry[str]]:
        def order(entry: os.DirEntry[str]) -> tuple[bool, bytes]:
            return bool(directory) or entry.name not in ALWAYS_KEPT, os.fsencode(entry.name)

        return heapq.nsmallest(self.limits.files + 1, found, key=order)

    def _close(
        self,
        directory: str,
        known: Listing,
        fresh: Listing,
        folders: list[str],
        unread: list[Unread],
        size: int,
    ) -> None:
        budget = self.kept if directory.partition("/")[0] in ALWAYS_KEPT else self.rest
        dropped = 0
        for name, seen in list(fresh.items()):
            plain = 0 if seen.soft is None else seen.soft[0]
            if budget.entries <= 0:
                del fresh[name]
                dropped += 1
                continue
            budget.entries -= 1
            if plain > budget.bytes and seen.problem is None:
                fresh[name] = Seen(None, None, None, "too_large", "the tree is over its limit")
                size -= plain
            elif seen.problem is None:
                budget.bytes -= plain
        if dropped:
            detail = f"{dropped} or more left out"
            self.scan.problems.append((directory or ".", "too_many_files", detail))
        folders[:] = sorted((name for name in folders if name in fresh), reverse=True)
        if not directory:  # popped from the end: the kept ones first
            folders.sort(key=lambda name: name in ALWAYS_KEPT)
        unread[:] = [u for u in unread if u.name in fresh and fresh[u.name].problem is None]
        super()._close(directory, known, fresh, folders, unread, size)
