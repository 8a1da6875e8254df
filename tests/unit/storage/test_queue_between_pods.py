"""The queue: dense numbers, epochs as fence, retries that recognise their own bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from makers_snapshots import KEYS
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import (
    EndEntry,
    EpisodeCursor,
    EpochEntry,
    SnapshotEntry,
    Writer,
)
from stayer_evaluator.storage.dense import dense_length
from stayer_evaluator.storage.documents import CorruptObject, compress
from stayer_evaluator.storage.memory import CrashingStore, FaultyStore, MemoryStore, StoreKilled
from stayer_evaluator.storage.queue import (
    Fenced,
    QueueEnded,
    QueueReader,
    QueueWriter,
    decode_entry,
    encode_entry,
)
from stayer_evaluator.storage.store import ObjectStore, StoreError

FIRST, SECOND = Writer(incarnation=1, nonce="one"), Writer(incarnation=2, nonce="two")


def make_snapshot(number: int, writer: Writer = FIRST, **changes: Any) -> SnapshotEntry:
    fields: dict[str, Any] = {
        "number": number,
        "snapshot": 0,
        "writer": writer,
        "time": 1.0,
        "episode": EpisodeCursor(),
        "base": "",
        "tree": "t",
        "files": 0,
        "bytes": 0,
    }
    return SnapshotEntry(**{**fields, **changes})


def make_end(number: int, writer: Writer = FIRST) -> EndEntry:
    return EndEntry(
        number=number,
        writer=writer,
        time=2.0,
        failure_mode=FailureMode.NONE,
        episode=EpisodeCursor(),
    )


async def begin(store: ObjectStore, writer: Writer = FIRST) -> QueueWriter:
    return await QueueWriter.begin(store, KEYS, writer, 1.0)


async def kinds(store: ObjectStore) -> list[str]:
    reader = QueueReader(store, KEYS)
    found: list[str] = []
    while (entry := await reader.poll()) is not None:
        found.append(entry.kind)
    return found


def test_a_new_queue_begins_with_an_epoch_and_numbers_are_dense() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        queue = await begin(store)

        await queue.append(make_snapshot)
        await queue.append(lambda number: make_snapshot(number, snapshot=1))
        await queue.append(make_end)

        assert await kinds(store) == ["epoch", "snapshot", "snapshot", "end"]
        assert sorted(store.objects) == [KEYS.queue(number) for number in range(4)]

    asyncio.run(scenario())


def test_a_successor_finds_the_newest_snapshot_and_fences_its_predecessor() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        old = await begin(store)
        await old.append(make_snapshot)

        new = await begin(store, SECOND)

        assert new.last_snapshot is not None
        assert new.last_snapshot.number == 1
        with pytest.raises(Fenced):
            await old.append(lambda number: make_snapshot(number, snapshot=1))
        with pytest.raises(Fenced):
            await old.settle()
        await new.append(lambda number: make_snapshot(number, SECOND, snapshot=1))
        assert await kinds(store) == ["epoch", "snapshot", "epoch", "snapshot"]

    asyncio.run(scenario())


def test_two_recorders_that_start_at_once_both_get_an_epoch_and_the_later_one_wins() -> None:
    async def scenario() -> None:
        store = MemoryStore()

        queues = await asyncio.gather(begin(store), begin(store, SECOND))

        assert await kinds(store) == ["epoch", "epoch"]
        winner = max(queues, key=lambda queue: queue.next_number)
        loser = min(queues, key=lambda queue: queue.next_number)
        await winner.append(lambda number: make_snapshot(number, winner.writer))
        with pytest.raises(Fenced):
            await loser.append(lambda number: make_snapshot(number, loser.writer))

    asyncio.run(scenario())


def test_an_entry_appended_while_the_epoch_is_won_is_adopted() -> None:
    """The old recorder appends between the look at the queue's end and the epoch."""

    class Late(MemoryStore):
        async def create(self, key: str, data: bytes) -> bool:
            if key == KEYS.queue(2) and key not in self.objects:
                self.objects[key] = encode_entry(make_snapshot(2, snapshot=1))
            return await super().create(key, data)

    async def scenario() -> None:
        store = Late()
        old = await begin(store)
        await old.append(make_snapshot)

        new = await begin(store, SECOND)

        assert new.next_number == 4
        assert new.last_snapshot is not None
        assert new.last_snapshot.snapshot == 1

    asyncio.run(scenario())


def test_an_ended_queue_takes_no_epoch_and_no_entry() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        queue = await begin(store)
        await queue.append(make_end)

        late = await begin(store, SECOND)

        assert late.end == make_end(1)
        assert await kinds(store) == ["epoch", "end"]
        for one in (queue, late):
            with pytest.raises(QueueEnded):
                await one.append(make_snapshot)

    asyncio.run(scenario())


@pytest.mark.parametrize("lost", [True, False], ids=["answer lost", "refused"])
def test_an_append_of_unknown_outcome_is_settled_before_the_next(lost: bool) -> None:
    async def scenario() -> None:
        inner = MemoryStore()
        store = FaultyStore(inner, lost=[3] if lost else [], refused=[] if lost else [3])
        queue = await begin(store)  # calls 0 (length) and 1 (epoch)
        await queue.append(make_snapshot)  # call 2
        with pytest.raises(StoreError):
            await queue.append(lambda number: make_snapshot(number, snapshot=1))
        with pytest.raises(ValueError, match="not the next"):
            await queue.commit(queue.prepare(lambda number: make_snapshot(number, snapshot=9)))

        await queue.append(lambda number: make_snapshot(number, snapshot=2))

        reader = QueueReader(inner, KEYS)
        entries = [await reader.read(number) for number in range(4)]
        counts = [entry.snapshot for entry in entries if isinstance(entry, SnapshotEntry)]
        assert counts == [0, 1, 2]

    asyncio.run(scenario())


@pytest.mark.parametrize("write", range(1, 5))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write_a_successor_goes_on_with_a_dense_queue(
    write: int, after: bool
) -> None:
    async def work(store: ObjectStore, writer: Writer) -> None:
        queue = await begin(store, writer)

        def next_snapshot(number: int) -> SnapshotEntry:
            last = queue.last_snapshot
            count = 0 if last is None else last.snapshot + 1
            return make_snapshot(number, writer, snapshot=count)

        while queue.last_snapshot is None or queue.last_snapshot.snapshot < 2:
            await queue.append(next_snapshot)

    async def scenario() -> None:
        inner = MemoryStore()
        with pytest.raises(StoreKilled):
            await work(CrashingStore(inner, write, after=after), FIRST)

        await work(inner, SECOND)

        reader = QueueReader(inner, KEYS)
        entries = []
        while (entry := await reader.poll()) is not None:
            entries.append(entry)
        counts = [entry.snapshot for entry in entries if isinstance(entry, SnapshotEntry)]
        assert counts == [0, 1, 2]
        assert len(inner.objects) == len(entries)

    asyncio.run(scenario())


def test_a_reader_waits_longer_and_longer_for_the_next_entry() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 7:
                store.objects[KEYS.queue(0)] = encode_entry(
                    EpochEntry(number=0, writer=FIRST, time=1.0)
                )

        reader = QueueReader(store, KEYS, sleep=sleep)

        entry = await reader.next()

        assert entry.kind == "epoch"
        assert reader.position == 1
        assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]

    asyncio.run(scenario())


CORRUPT = [
    ("no frame", b"rubbish"),
    ("empty", b""),
    ("another document", compress(FIRST)),
    ("another number", encode_entry(make_snapshot(4))),
    ("cut off", encode_entry(make_snapshot(3))[:-4]),
]


@pytest.mark.parametrize("data", [pytest.param(d, id=i) for i, d in CORRUPT])
def test_what_is_no_entry_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptObject):
        decode_entry(data, 3)


def test_equal_entries_have_equal_bytes_and_are_read_back() -> None:
    for entry in (make_snapshot(3), make_end(3), EpochEntry(number=3, writer=FIRST, time=1.5)):
        assert decode_entry(encode_entry(entry), 3) == entry
        assert encode_entry(entry) == encode_entry(entry.model_copy())


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 8, 9, 1000])
def test_the_end_of_a_series_is_found_in_a_few_reads(length: int) -> None:
    class Counting(MemoryStore):
        reads = 0

        async def get_range(self, key: str, offset: int, length: int) -> bytes:
            self.reads += 1
            return await super().get_range(key, offset, length)

    store = Counting({KEYS.queue(number): b"x" for number in range(length)})

    assert asyncio.run(dense_length(store, KEYS.queue)) == length
    assert store.reads <= 2 * length.bit_length() + 2
