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
from stayer_evaluator.storage.store import ObjectStore


class Evidence:
    """Reads snapshots of one trial. Contents are downloaded once and verified."""

    def __init__(self, store: ObjectStore, base: Base, packs: PackCache) -> None:
        self.store = store
        self.base = base
        self.packs = packs
        self._sizes: DiffSizes | None = None
        self._known: dict[str, int] = {}

    async def tree(self, entry: SnapshotEntry) -> Tree:
        """The full tree, its packs on local disk. Raises CorruptObject, StoreError."""
        tree = await asyncio.to_thread(entry_tree, entry, self.base if entry.base else NO_BASE)
        await self.packs.fetch(self.store, tree)
        return tree

    async def diff_lines(self, entry: SnapshotEntry, initial: SnapshotEntry) -> int:
        """D of the snapshot against the first one (evaluation.md §10.5)."""
        known = self._known.get(entry.tree)
        if known is None:
            if self._sizes is None:
                self._sizes = DiffSizes(await self.tree(initial), self.packs)
            tree = await self.tree(entry)
            known = self._known[entry.tree] = await asyncio.to_thread(self._sizes.of, tree)
        return known

    def restorer(self, tree: Tree, root: Path) -> Callable[[int], None]:
        """What fills `root` with the tree, owned by the uid that it is given."""
        return lambda uid: restore(tree, self.packs, root, Owner(uid, uid))
