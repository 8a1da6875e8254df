"""What the adjudicator knows of the queue: its entries in order, and the verdicts there are.

Pure bookkeeping. A snapshot is considered only once its successor (or the end) is known: so every
verdict knows whether it is the last one, and no score depends on who was faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from stayer_evaluator.records.queue import EndEntry, EpochEntry, SnapshotEntry
from stayer_evaluator.records.verdict import Verdict


@dataclass(slots=True)
class History:
    """Entries as read, verdicts as found or made, and how far the queue has been considered.

    Of snapshots only what scores need is kept: their file lists are read again when they are
    adjudicated, so that memory does not grow with the length of an episode.
    """

    snapshots: list[SnapshotEntry] = field(default_factory=list)
    epochs: list[EpochEntry] = field(default_factory=list)
    end: EndEntry | None = None
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    considered: int = -1
    """Queue number up to which nothing waits."""
    _packs: dict[str, int] = field(default_factory=dict)

    def add(self, entry: EpochEntry | SnapshotEntry | EndEntry) -> None:
        """The next entry of the queue."""
        match entry:
            case SnapshotEntry():
                self._count_packs(entry)
                self.snapshots.append(slim(entry))
            case EpochEntry():
                self.epochs.append(entry)
            case EndEntry():
                self.end = entry

    @property
    def bytes_stored(self) -> int:
        """Bytes of the trial's own packs: each ends where its last content ends."""
        return sum(end for pack, end in self._packs.items() if not pack.startswith("tasks/"))

    def _count_packs(self, entry: SnapshotEntry) -> None:
        for file in entry.changed:
            for chunk in file.chunks:
                pack = entry.packs[chunk.pack]
                self._packs[pack] = max(self._packs.get(pack, 0), chunk.offset + chunk.length)

    @property
    def waiting(self) -> tuple[SnapshotEntry, ...]:
        """Snapshots that can be considered now, oldest first."""
        known = self.snapshots if self.end is not None else self.snapshots[:-1]
        return tuple(entry for entry in known if entry.number > self.considered)

    @property
    def depth(self) -> int:
        """Snapshots not yet considered, the newest included."""
        return sum(entry.number > self.considered for entry in self.snapshots)

    @property
    def finished(self) -> bool:
        """The episode has ended and nothing waits."""
        return self.end is not None and not self.waiting

    def is_last(self, entry: SnapshotEntry) -> bool:
        """The episode ended on this snapshot."""
        return self.end is not None and entry is self.snapshots[-1]

    def next_verdict(self) -> Verdict | None:
        """The earliest verdict on what is not yet considered."""
        numbers = [number for number in self.verdicts if number > self.considered]
        return self.verdicts[min(numbers)] if numbers else None

    def in_order(self) -> Iterator[Verdict]:
        """Verdicts in queue order."""
        return (self.verdicts[number] for number in sorted(self.verdicts))


def slim(entry: SnapshotEntry) -> SnapshotEntry:
    """The entry without its lists of paths."""
    return entry.model_copy(update={"packs": (), "changed": (), "removed": (), "reports": ()})
