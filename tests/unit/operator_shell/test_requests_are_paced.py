"""The token bucket, with time that the test moves."""

from __future__ import annotations

import asyncio

from stayer_operator.adapters.pacing import TokenBucket


class Time:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def take(bucket: TokenBucket, count: int) -> None:
    async def main() -> None:
        for _ in range(count):
            await bucket.take()

    asyncio.run(main())


def test_a_burst_passes_at_once() -> None:
    time = Time()
    take(TokenBucket(10, 5, time, time.sleep), 5)
    assert time.slept == []


def test_beyond_the_burst_each_waits_for_its_own_token() -> None:
    time = Time()
    take(TokenBucket(10, 1, time, time.sleep), 4)
    assert time.slept == [0.1, 0.2, 0.3]


def test_tokens_come_back_with_time_but_not_beyond_the_burst() -> None:
    time = Time()
    bucket = TokenBucket(10, 2, time, time.sleep)
    take(bucket, 2)
    time.now = 60.0
    take(bucket, 3)
    assert time.slept == [0.1]


def test_hold_keeps_everybody_for_as_long_as_the_server_asked() -> None:
    time = Time()
    bucket = TokenBucket(10, 5, time, time.sleep)
    bucket.hold(3.0)
    take(bucket, 1)
    assert [round(seconds, 6) for seconds in time.slept] == [3.1]
