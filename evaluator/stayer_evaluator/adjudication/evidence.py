"""Snapshots as the adjudicator needs them: their trees, contents on local disk, and their D."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from stayer_evaluator.adjudication.sizes import DiffSizes
from stayer_evaluator.records.queue import SnapshotEntry
from stayer_evaluator.snapshots.base import NO_BASE, Base
from stayer_evaluator.snapshots.manifest import Tree
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner, restore
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectStore


class Evidence:
    """Reads snapshots of one trial, one at a time. Contents are downloaded once and verified."""

    def __init__(
        self, store: ObjectStore, reader: QueueReader, base: Base, packs: PackCache
    ) -> None:
        self.store = store
        self.reader = reader
        self.base = base
        self.packs = packs
        self._sizes: DiffSizes | None = None
        self._known: dict[str, int] = {}
        self._latest: tuple[int, Tree] | None = None

    async def tree(self, number: int) -> Tree:
        """The full tree of the snapshot with that queue number, its packs on local disk.

        Packs that neither it nor the initial tree needs leave the disk. Raises CorruptObject,
        ObjectMissing, StoreError.
        """
        if self._latest is None or self._latest[0] != number:
            entry = await self.reader.read(number)
            if not isinstance(entry, SnapshotEntry):
                raise CorruptObject(f"queue entry {number} is no snapshot")
            base = self.base if entry.base else NO_BASE
            tree = await asyncio.to_thread(entry_tree, entry, base)
            await self.packs.fetch(self.store, tree)
            self.packs.discard_others(self._needed(tree))
            self._latest = (number, tree)
        return self._latest[1]

    async def diff_lines(self, entry: SnapshotEntry, initial: int) -> int:
        """D of the snapshot against that with the queue number `initial` (evaluation.md §10.5)."""
        known = self._known.get(entry.tree)
        if known is None:
            if self._sizes is None:
                self._sizes = DiffSizes(await self.tree(initial), self.packs)
            tree = await self.tree(entry.number)
            known = self._known[entry.tree] = await asyncio.to_thread(self._sizes.of, tree)
        return known

    def restorer(self, tree: Tree, root: Path) -> Callable[[int], None]:
        """What fills `root` with the tree, owned by the uid that it is given."""
        return lambda uid: restore(tree, self.packs, root, Owner(uid, uid))

    def _needed(self, tree: Tree) -> Tree:
        """Both trees in one: no path begins with a slash."""
        if self._sizes is None:
            return tree
        return {**tree, **{b"/" + path: node for path, node in self._sizes.initial.items()}}
