"""The queue between the two pods of a trial: dense numbers, create-only entries, epochs as fence.

Nothing here lists keys: the end of the queue is where a number is missing (design.md §4). As the
numbers are dense, the end of a long queue is found with a handful of reads.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

import pydantic

from stayer_evaluator.records.queue import (
    EndEntry,
    EpochEntry,
    SnapshotEntry,
    Writer,
    queue_entry,
)
from stayer_evaluator.storage.dense import dense_length
from stayer_evaluator.storage.documents import CorruptObject, compress, decompress
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.store import ObjectExists, ObjectMissing, ObjectStore, StoreError

Entry = EpochEntry | SnapshotEntry | EndEntry


class Fenced(StoreError):  # noqa: N818 (reads as what happened)
    """Another recorder has taken over this trial: stop the agent and exit."""

    retryable = False


class QueueEnded(StoreError):  # noqa: N818
    """The queue has its `end` entry; nothing may follow."""

    retryable = False


def encode_entry(entry: Entry) -> bytes:
    """The stored bytes of a queue entry."""
    return compress(entry)


def decode_entry(data: bytes, number: int) -> Entry:
    """The entry in `data`, which must carry `number`. Raises CorruptObject."""
    try:
        entry = queue_entry.validate_json(decompress(data))
    except pydantic.ValidationError as error:
        raise CorruptObject(f"queue entry {number}: {error}") from error
    if entry.number != number:
        raise CorruptObject(f"queue entry {number} carries the number {entry.number}")
    return entry


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry and its bytes, ready to be written."""

    entry: Entry
    data: bytes


class QueueWriter:
    """Appends to a trial's queue as one writer. Make one with `begin`."""

    def __init__(self, store: ObjectStore, keys: TrialKeys, writer: Writer) -> None:
        self.store = store
        self.keys = keys
        self.writer = writer
        self.next_number = 0
        self.last_snapshot: SnapshotEntry | None = None
        """The newest durable snapshot of the trial, whoever wrote it."""
        self.end: EndEntry | None = None
        self._unsettled: Prepared | None = None

    @classmethod
    async def begin(cls, store: ObjectStore, keys: TrialKeys, writer: Writer, time: float) -> Self:
        """Take over the queue: append an epoch at the next free number until one is won.

        Afterwards `last_snapshot` is the state to resume from (None: nothing yet) and `end` is set
        when the episode is over already, in which case no epoch was appended.
        Raises Fenced when a later incarnation has written: an old pod's recorder, started again,
        must not take the trial back. Raises StoreError for trouble that outlasts the store's own
        deadline.
        """
        queue = cls(store, keys, writer)
        queue.next_number = await dense_length(store, keys.queue)
        await queue._look_back()
        while queue.end is None:
            entry = EpochEntry(number=queue.next_number, writer=writer, time=time)
            try:
                await queue._create(entry, encode_entry(entry))
                break
            except ObjectExists:
                queue._adopt(await queue._read(queue.next_number))
        return queue

    async def append(self, build: Callable[[int], Entry]) -> Entry:
        """Append the entry that `build` makes for the next number; durable when this returns.

        After a StoreError the entry may or may not be durable; the next `append` or `settle`
        brings it to its end first. Raises Fenced, QueueEnded, StoreError.
        """
        await self.settle()
        return await self.commit(self.prepare(build))

    def prepare(self, build: Callable[[int], Entry]) -> Prepared:
        """Build and encode the next entry without writing it; only after `settle`.

        Raises QueueEnded.
        """
        if self.end is not None:
            raise QueueEnded(self.keys.queue(self.end.number))
        entry = build(self.next_number)
        return Prepared(entry, encode_entry(entry))

    async def commit(self, prepared: Prepared) -> Entry:
        """Write a prepared entry, the next one; as `append` otherwise."""
        if self._unsettled is not None or prepared.entry.number != self.next_number:
            raise ValueError(f"entry {prepared.entry.number} is not the next of this queue")
        self._unsettled = prepared
        await self.settle()
        return prepared.entry

    async def settle(self) -> None:
        """Finish an append whose outcome is unknown. Raises Fenced, StoreError."""
        if self._unsettled is None:
            return
        try:
            await self._create(self._unsettled.entry, self._unsettled.data)
        except ObjectExists as error:
            raise Fenced(f"queue entry {self.next_number} is another writer's") from error
        self._unsettled = None

    async def _create(self, entry: Entry, data: bytes) -> None:
        await self.store.create(self.keys.queue(entry.number), data)
        self._adopt(entry)

    def _adopt(self, entry: Entry) -> None:
        self._check_incarnation(entry)
        self.next_number = entry.number + 1
        if isinstance(entry, SnapshotEntry):
            self.last_snapshot = entry
        elif isinstance(entry, EndEntry):
            self.end = entry

    def _check_incarnation(self, entry: Entry) -> None:
        if entry.writer is not None and entry.writer.incarnation > self.writer.incarnation:
            raise Fenced(
                f"queue entry {entry.number} is of incarnation {entry.writer.incarnation}, "
                f"later than {self.writer.incarnation}"
            )

    async def _look_back(self) -> None:
        """Find the newest snapshot, and the end entry if there is one."""
        for number in range(self.next_number - 1, -1, -1):
            entry = await self._read(number)
            self._check_incarnation(entry)
            if isinstance(entry, EndEntry):
                self.end = entry
            elif isinstance(entry, SnapshotEntry):
                self.last_snapshot = entry
                return

    async def _read(self, number: int) -> Entry:
        return decode_entry(await self.store.get(self.keys.queue(number)), number)


class QueueReader:
    """Reads a trial's queue in order, from `position` on."""

    def __init__(
        self,
        store: ObjectStore,
        keys: TrialKeys,
        position: int = 0,
        *,
        shortest_wait: float = 0.25,
        longest_wait: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store = store
        self.keys = keys
        self.position = position
        self._waits = (shortest_wait, longest_wait)
        self._sleep = sleep

    async def poll(self) -> Entry | None:
        """The next entry if it is there. Raises CorruptObject, StoreError."""
        try:
            data = await self.store.get(self.keys.queue(self.position))
        except ObjectMissing:
            return None
        entry = decode_entry(data, self.position)
        self.position += 1
        return entry

    async def next(self) -> Entry:
        """The next entry, awaited with a wait that doubles from 0.25 s up to 5 s."""
        wait, longest = self._waits
        while (entry := await self.poll()) is None:
            await self._sleep(wait)
            wait = min(2 * wait, longest)
        return entry

    async def read(self, number: int) -> Entry:
        """One entry by number, without moving. Raises ObjectMissing, CorruptObject, StoreError."""
        return decode_entry(await self.store.get(self.keys.queue(number)), number)
