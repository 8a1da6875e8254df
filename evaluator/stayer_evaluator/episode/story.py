"""What earlier recorders of a trial left: their snapshots, and how much of them they traced."""

from dataclasses import dataclass

from stayer_evaluator.episode.trace import read_series
from stayer_evaluator.records.queue import EpochEntry, SnapshotEntry
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import QueueReader, QueueWriter
from stayer_evaluator.storage.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Story:
    """The trial before this recorder's own epoch."""

    snapshots: tuple[SnapshotEntry, ...]
    traced: frozenset[int]
    """Counts of the snapshots that stand in some trace."""
    rounds: frozenset[int]
    """Numbers of the rounds whose end stands in some trace."""


async def earlier_story(store: ObjectStore, keys: TrialKeys, queue: QueueWriter) -> Story:
    """Read it, once at a restart: every queue entry and every trace segment. Raises StoreError."""
    reader = QueueReader(store, keys)
    entries = [await reader.read(number) for number in range(queue.next_number)]
    events = []
    for entry in entries:
        if isinstance(entry, EpochEntry) and entry.writer != queue.writer:
            name = f"recorder-{entry.writer.incarnation}-{entry.writer.nonce}"
            events += await read_series(store, keys, name)
    return Story(
        tuple(entry for entry in entries if isinstance(entry, SnapshotEntry)),
        frozenset(
            e.snapshot for e in events if e.type == "snapshot_taken" and e.snapshot is not None
        ),
        frozenset(e.data["round"] for e in events if e.type == "round_ended"),
    )
