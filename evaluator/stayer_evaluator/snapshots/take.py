"""The snapshotter: makes the workspace's present state durable, then announces it."""

from dataclasses import dataclass
from pathlib import Path

from stayer_evaluator.records.queue import EpisodeCursor, SnapshotEntry
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.base import Base
from stayer_evaluator.snapshots.collect import Collected, Collector
from stayer_evaluator.snapshots.excludes import excludes
from stayer_evaluator.snapshots.manifest import (
    BadManifest,
    Tree,
    delta,
    expand,
    implemented,
    pieces_of,
    tree_digest,
)
from stayer_evaluator.snapshots.pack import Pack
from stayer_evaluator.snapshots.walk import Limits
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.queue import QueueWriter


@dataclass(slots=True)
class SnapshotTotals:
    """What this process has stored and read so far."""

    bytes_stored: int = 0
    bytes_read: int = 0
    packs: int = 0


class Snapshotter:
    """Takes snapshots of `root` into the queue of one trial."""

    def __init__(
        self, root: Path, queue: QueueWriter, base: Base, settings: SnapshotSettings
    ) -> None:
        self.queue = queue
        self.base = base
        self.totals = SnapshotTotals()
        known = pieces_of(base.tree)
        if queue.last_snapshot is not None:
            known |= pieces_of(entry_tree(queue.last_snapshot, base))
        self._collector = Collector(
            root,
            excludes(public=settings.public_excludes, patterns=settings.excludes),
            Limits(files=settings.max_files, bytes=settings.max_bytes),
            known,
        )
        self._latest: tuple[Collected, str] | None = None

    def close(self) -> None:
        """End the threads."""
        self._collector.close()

    async def take(
        self, episode: EpisodeCursor, time: float, *, reread: bool = False, force: bool = False
    ) -> SnapshotEntry | None:
        """Store and announce the workspace as it is; None when it equals the newest snapshot.

        At most two PUTs: a pack if there is new content (one more for every 64 MiB of it), then
        the queue entry. `reread` trusts no time stamp: for the last snapshot of an episode.
        `force` announces an unchanged tree too. Raises Fenced, StoreError (call again later:
        nothing is lost), OSError.
        """
        await self.queue.settle()
        collected = await self._collector.collect(self._upload, reread=reread)
        if collected is not None:
            self.totals.bytes_read += collected.bytes_read
            self._latest = (collected, tree_digest(collected.tree))
        assert self._latest is not None  # the first collection always finds a tree
        last = self.queue.last_snapshot
        if last is not None and last.tree == self._latest[1] and not force:
            return None
        return await self._announce(*self._latest, episode, time)

    async def _announce(
        self, collected: Collected, digest: str, episode: EpisodeCursor, time: float
    ) -> SnapshotEntry:
        last = self.queue.last_snapshot
        parts = delta(self.base.tree, collected.tree)
        entry = await self.queue.append(
            lambda number: SnapshotEntry(
                number=number,
                snapshot=0 if last is None else last.snapshot + 1,
                writer=self.queue.writer,
                time=time,
                episode=episode,
                base=self.base.sha256,
                packs=parts.packs,
                changed=parts.changed,
                removed=parts.removed,
                reports=collected.reports,
                tree=digest,
                files=sum(node.type == "file" for node in collected.tree.values()),
                bytes=sum(node.size for node in collected.tree.values()),
                implemented=implemented(collected.tree),
            )
        )
        assert isinstance(entry, SnapshotEntry)
        return entry

    async def _upload(self, pack: Pack) -> str:
        key = self.queue.keys.pack(pack.digest)
        await self.queue.store.create(key, pack.data)
        self.totals.bytes_stored += len(pack.data)
        self.totals.packs += 1
        return key


def entry_tree(entry: SnapshotEntry, base: Base) -> Tree:
    """The full tree of a snapshot. Raises CorruptObject when entry and base do not fit."""
    if entry.base != base.sha256:
        raise CorruptObject(f"snapshot {entry.snapshot} needs base {entry.base or 'none'}")
    try:
        tree = expand(base.tree, entry.packs, entry.changed, entry.removed)
    except (BadManifest, names.UnsafePath) as error:
        raise CorruptObject(f"snapshot {entry.snapshot}: {error}") from error
    if tree_digest(tree) != entry.tree:
        raise CorruptObject(f"snapshot {entry.snapshot}: its entries do not give its digest")
    return tree
