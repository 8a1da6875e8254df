"""The recorder's trace: dense numbers, few PUTs, nothing lost by a failed one."""

import asyncio

import pytest

from makers_episode import PREFIX
from stayer_evaluator.episode.trace import TraceWriter, decode_segment
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import FaultyStore, MemoryStore
from stayer_evaluator.storage.store import ObjectStore, StoreError

KEYS = TrialKeys(PREFIX)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def make_writer(store: ObjectStore, clock: Clock) -> TraceWriter:
    return TraceWriter(store, KEYS, "recorder-1-abc", wall=clock, clock=clock, interval=5)


def stored(store: MemoryStore) -> list[tuple[int, str]]:
    events = []
    number = 0
    while (key := KEYS.trace("recorder-1-abc", number)) in store.objects:
        events += decode_segment(store.objects[key])
        number += 1
    assert len(store.objects) == number
    return [(event.sequence, event.type) for event in events]


def test_events_of_a_flush_are_one_object():
    store, clock = MemoryStore(), Clock()
    trace = make_writer(store, clock)
    trace.add("round_started", 0, round=1)
    trace.add("snapshot_taken", 1)

    asyncio.run(trace.flush())
    asyncio.run(trace.flush())
    trace.add("round_ended")
    asyncio.run(trace.flush())

    assert trace.puts == store.writes == 2
    assert stored(store) == [(0, "round_started"), (1, "snapshot_taken"), (2, "round_ended")]


def test_a_flush_is_due_when_something_waits_long_enough():
    clock = Clock()
    trace = make_writer(MemoryStore(), clock)
    assert not trace.due
    trace.add("round_started")
    assert not trace.due
    clock.now += 5
    assert trace.due
    asyncio.run(trace.flush())
    assert not trace.due


@pytest.mark.parametrize("kind", ["refused", "lost"])
def test_a_failed_put_is_made_again_unchanged(kind):
    store, clock = MemoryStore(), Clock()
    trace = make_writer(FaultyStore(store, **{kind: [0]}), clock)
    trace.add("round_started")

    with pytest.raises(StoreError):
        asyncio.run(trace.flush())
    trace.add("round_ended")
    asyncio.run(trace.flush())

    assert stored(store) == [(0, "round_started"), (1, "round_ended")]
    assert trace.puts == 2
