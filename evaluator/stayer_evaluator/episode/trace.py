"""The recorder's trace: events with dense numbers, stored in segments (evaluation.md §8).

A segment is one object under `trace/<writer>/<number>`: a zstd frame of JSON lines. Segments are
dense from 0, so that a reader knows the end without listing.
"""

from collections.abc import Callable
from typing import Any

import zstandard

from stayer_evaluator.records.trace import EventType, TraceEvent
from stayer_evaluator.storage.documents import decompress
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.store import ObjectMissing, ObjectStore


def encode_segment(events: list[TraceEvent]) -> bytes:
    """The stored bytes of a segment."""
    lines = b"".join(event.to_bytes() + b"\n" for event in events)
    return zstandard.ZstdCompressor(level=3).compress(lines)


def decode_segment(data: bytes) -> list[TraceEvent]:
    """The events of a segment. Raises CorruptObject, pydantic.ValidationError."""
    return [TraceEvent.from_bytes(line) for line in decompress(data).splitlines()]


async def read_series(store: ObjectStore, keys: TrialKeys, writer: str) -> list[TraceEvent]:
    """All events of a writer's series. Raises CorruptObject, StoreError."""
    events: list[TraceEvent] = []
    number = 0
    while True:
        try:
            data = await store.get(keys.trace(writer, number))
        except ObjectMissing:
            return events
        events += decode_segment(data)
        number += 1


class TraceWriter:
    """Collects events and stores them in batches.

    A PUT is made by `flush` only; `due` says when one is worth it. Events of a segment whose PUT
    failed stay and go out, unchanged, with the next flush.
    """

    def __init__(
        self,
        store: ObjectStore,
        keys: TrialKeys,
        writer: str,
        *,
        wall: Callable[[], float],
        clock: Callable[[], float],
        interval: float,
    ) -> None:
        self.writer = writer
        self.puts = 0
        self._store = store
        self._keys = keys
        self._wall = wall
        self._clock = clock
        self._interval = interval
        self._flushed = clock()
        self._sequence = 0
        self._waiting: list[TraceEvent] = []
        self._sealed: bytes | None = None  # of a segment whose PUT has no answer yet

    def add(self, type_: EventType, snapshot: int | None = None, **data: Any) -> None:
        """Note an event."""
        self._waiting.append(
            TraceEvent(
                type=type_,
                writer=self.writer,
                sequence=self._sequence,
                time=self._wall(),
                snapshot=snapshot,
                data=data,
            )
        )
        self._sequence += 1

    @property
    def due(self) -> bool:
        """Something waits and the last flush is long enough ago."""
        waiting = bool(self._waiting) or self._sealed is not None
        return waiting and self._clock() - self._flushed >= self._interval

    async def flush(self) -> None:
        """Make everything noted so far durable. Raises StoreError; then call again."""
        await self._put_sealed()
        if self._waiting:
            self._sealed = encode_segment(self._waiting)
            self._waiting = []
            await self._put_sealed()

    async def _put_sealed(self) -> None:
        if self._sealed is None:
            return
        await self._store.create(self._keys.trace(self.writer, self.puts), self._sealed)
        self.puts += 1
        self._sealed = None
        self._flushed = self._clock()
