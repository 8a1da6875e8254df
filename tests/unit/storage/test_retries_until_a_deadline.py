"""Retries: until a deadline, spread by chance, counted, and only where waiting may help."""

from __future__ import annotations

import asyncio

import pytest

from stayer_evaluator.storage.memory import FaultyStore, MemoryStore
from stayer_evaluator.storage.retry import (
    RetryingMutableStore,
    RetryingStore,
    RetryPolicy,
    StoreCounters,
)
from stayer_evaluator.storage.store import AccessDenied, ObjectExists, ObjectMissing, StoreError


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)


def make_store(
    inner: FaultyStore | MemoryStore, deadline: float = 300.0
) -> tuple[RetryingStore, Time]:
    time = Time()
    policy = RetryPolicy(deadline=deadline, first_wait=0.2, longest_wait=15.0)
    store = RetryingStore(inner, policy, clock=time.clock, sleep=time.sleep, chance=lambda: 1.0)
    return store, time


def test_trouble_that_passes_is_not_seen_above() -> None:
    inner = FaultyStore(MemoryStore(), refused=[0, 1, 3], lost=[2])
    store, time = make_store(inner)

    assert asyncio.run(store.create("k", b"data")) is True

    assert time.waits == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert store.counters.requests == {"create": 5}
    assert store.counters.errors == 4
    assert (store.counters.total, store.counters.bytes_written) == (5, 4)


def test_trouble_that_lasts_is_raised_at_the_deadline_not_after() -> None:
    store, time = make_store(FaultyStore(MemoryStore(), refused=range(1000)))

    with pytest.raises(StoreError):
        asyncio.run(store.get("k"))

    assert 280 < time.now <= 300
    assert max(time.waits) == 15.0


@pytest.mark.parametrize("error", [ObjectMissing, ObjectExists, AccessDenied])
def test_what_waiting_cannot_mend_is_raised_at_once(error: type[StoreError]) -> None:
    class Failing(MemoryStore):
        async def get(self, key: str) -> bytes:
            raise error(key)

    store, time = make_store(Failing())

    with pytest.raises(error):
        asyncio.run(store.get("k"))
    assert time.waits == []


def test_waits_are_spread_over_their_upper_half() -> None:
    policy = RetryPolicy(first_wait=1.0, longest_wait=8.0)

    assert [policy.wait(tries, 0.0) for tries in (1, 2, 3, 4, 5, 500)] == [0.5, 1, 2, 4, 4, 4]
    assert policy.wait(3, 0.5) == 3.0


def test_a_stream_is_begun_again_until_its_first_piece_and_not_after() -> None:
    async def read(store: RetryingStore) -> bytes:
        return b"".join([piece async for piece in store.stream("k")])

    inner = MemoryStore({"k": b"x" * (3 << 20)})
    store, _ = make_store(FaultyStore(inner, refused=[0, 1]))
    assert len(asyncio.run(read(store))) == 3 << 20
    assert store.counters.bytes_read == 3 << 20

    cut, _ = make_store(FaultyStore(inner, lost=[0]))
    with pytest.raises(StoreError, match="cut off"):
        asyncio.run(read(cut))


def test_a_mutable_store_keeps_its_other_methods() -> None:
    async def scenario() -> None:
        counters = StoreCounters()
        store = RetryingMutableStore(MemoryStore(), counters=counters)
        await store.put("a/1", b"x")
        await store.put("a/1", b"xyz")
        await store.create("b", b"")

        assert await store.keys("a/") == ["a/1"]
        assert await store.get_range("a/1", 1, 2) == b"yz"
        await store.delete(["a/1", "missing"])
        assert await store.keys("") == ["b"]
        assert counters.requests == {"put": 2, "create": 1, "list": 2, "get": 1, "delete": 1}

    asyncio.run(scenario())
