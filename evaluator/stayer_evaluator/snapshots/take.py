"""The snapshotter: makes the workspace's present state durable, then announces it."""

from dataclasses import dataclass
from pathlib import Path

from stayer_evaluator.records.queue import EpisodeCursor, PathReport, SnapshotEntry
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.base import Base
from stayer_evaluator.snapshots.collect import Collected, Collector, PackStore
from stayer_evaluator.snapshots.excludes import excludes
from stayer_evaluator.snapshots.manifest import (
    BadManifest,
    Delta,
    Tree,
    delta,
    expand,
    implemented,
    pieces_of,
    tree_digest,
)
from stayer_evaluator.snapshots.walk import Limits
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.pause import collector_paused
from stayer_evaluator.storage.queue import Prepared, QueueWriter


@dataclass(frozen=True, slots=True)
class Described:
    """What a queue entry says of a tree."""

    tree: str
    delta: Delta
    reports: tuple[PathReport, ...]
    files: int
    bytes: int
    implemented: tuple[str, ...]


def describe(collected: Collected, base: Base) -> Described:
    """All that follows from the tree alone. Pure."""
    tree = collected.tree
    files = size = 0
    for node in tree.values():
        files += node.type == "file"
        size += node.size
    return Described(
        tree=tree_digest(tree),
        delta=delta(base.tree, tree),
        reports=collected.reports,
        files=files,
        bytes=size,
        implemented=implemented(tree),
    )


class Snapshotter:
    """Takes snapshots of `root` into the queue of one trial."""

    def __init__(
        self, root: Path, queue: QueueWriter, base: Base, settings: SnapshotSettings
    ) -> None:
        self.queue = queue
        self.base = base
        self.bytes_read = 0
        self.packs = PackStore(queue.store, queue.keys.pack)
        known = pieces_of(base.tree)
        if queue.last_snapshot is not None:
            known |= pieces_of(entry_tree(queue.last_snapshot, base))
        self._collector = Collector(
            root,
            excludes(public=settings.public_excludes, patterns=settings.excludes),
            Limits(files=settings.max_files, bytes=settings.max_bytes),
            known,
        )
        self._latest: Described | None = None

    def close(self) -> None:
        """End the threads."""
        self._collector.close()

    async def take(
        self, episode: EpisodeCursor, time: float, *, reread: bool = False, force: bool = False
    ) -> SnapshotEntry | None:
        """Store and announce the workspace as it is; None when it equals the newest snapshot.

        At most two PUTs: a pack if there is new content (one more for every 16 MiB of it), then
        the queue entry. `reread` trusts no time stamp: for the last snapshot of an episode.
        `force` announces an unchanged tree too. Raises Fenced, StoreError (call again later:
        nothing is lost), OSError.
        """
        await self.queue.settle()
        collected = await self._collector.collect(self.packs, reread=reread)
        if collected is None:
            assert self._latest is not None  # the first collection always finds a tree
            return await self._commit(self._prepare(self._latest, episode, time, force=force))
        with collector_paused(count_as_old=True):  # all of it while the last pack is on its way
            latest = describe(collected, self.base)
            prepared = self._prepare(latest, episode, time, force=force)
        await self._collector.settle(collected)
        self.bytes_read += collected.bytes_read
        self._latest = latest
        return await self._commit(prepared)

    async def _commit(self, prepared: Prepared | None) -> SnapshotEntry | None:
        if prepared is None:
            return None
        entry = await self.queue.commit(prepared)
        assert isinstance(entry, SnapshotEntry)
        return entry

    def _prepare(
        self, latest: Described, episode: EpisodeCursor, time: float, *, force: bool
    ) -> Prepared | None:
        """The entry to be written; None when the newest snapshot has this tree already."""
        last = self.queue.last_snapshot
        if last is not None and last.tree == latest.tree and not force:
            return None
        return self.queue.prepare(
            lambda number: SnapshotEntry(
                number=number,
                snapshot=0 if last is None else last.snapshot + 1,
                writer=self.queue.writer,
                time=time,
                episode=episode,
                base=self.base.sha256,
                packs=latest.delta.packs,
                changed=latest.delta.changed,
                removed=latest.delta.removed,
                reports=latest.reports,
                tree=latest.tree,
                files=latest.files,
                bytes=latest.bytes,
                implemented=latest.implemented,
            )
        )


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
