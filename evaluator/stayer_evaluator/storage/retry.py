"""Retries above whatever the client library does: until a deadline, with jittered back-off."""

import asyncio
import inspect
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from stayer_evaluator.storage.store import MutableStore, ObjectStore, StoreError

T = TypeVar("T")
S = TypeVar("S", bound=ObjectStore)


@dataclass(slots=True)
class StoreCounters:
    """What went over the wire; every try counts."""

    requests: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    bytes_written: int = 0
    bytes_read: int = 0

    @property
    def total(self) -> int:
        return sum(self.requests.values())

    def count(self, verb: str) -> None:
        self.requests[verb] = self.requests.get(verb, 0) + 1


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Seconds. A call is given up when the next wait would end past its deadline."""

    deadline: float = 300.0
    first_wait: float = 0.2
    longest_wait: float = 15.0

    def wait(self, tries: int, chance: float) -> float:
        """Wait after `tries` failed tries; `chance` in [0, 1) spreads it over its upper half."""
        ceiling: float = min(self.longest_wait, self.first_wait * 2.0 ** min(tries - 1, 16))
        return ceiling * (0.5 + chance / 2)


class RetryingStore(Generic[S]):
    """An ObjectStore that repeats retryable failures of another until the deadline.

    Safe for `create`, as that is idempotent: its own bytes count as success. A stream is not
    repeated once its first piece was handed out, as its reader has seen bytes already.
    """

    def __init__(
        self,
        inner: S,
        policy: RetryPolicy | None = None,
        *,
        counters: StoreCounters | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.inner = inner
        self.policy = policy or RetryPolicy()
        self.counters = counters or StoreCounters()
        self._clock = clock
        self._sleep = sleep
        self._chance = chance

    async def close(self) -> None:
        """Let go of connections and threads, where the inner store holds any."""
        closing = getattr(self.inner, "close", lambda: None)()
        if inspect.isawaitable(closing):
            await closing

    async def create(self, key: str, data: bytes) -> bool:
        done = await self._repeat("create", lambda: self.inner.create(key, data))
        self.counters.bytes_written += len(data)
        return done

    async def get(self, key: str) -> bytes:
        data = await self._repeat("get", lambda: self.inner.get(key))
        self.counters.bytes_read += len(data)
        return data

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        data = await self._repeat("get", lambda: self.inner.get_range(key, offset, length))
        self.counters.bytes_read += len(data)
        return data

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        pieces, piece = await self._repeat("get", lambda: _first(self.inner.stream(key)))
        while piece is not None:
            self.counters.bytes_read += len(piece)
            yield piece
            piece = await anext(pieces, None)

    async def _repeat(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        give_up = self._clock() + self.policy.deadline
        tries = 0
        while True:
            tries += 1
            self.counters.count(verb)
            try:
                return await call()
            except StoreError as error:
                if not error.retryable:
                    raise
                self.counters.errors += 1
                wait = self.policy.wait(tries, self._chance())
                if self._clock() + wait > give_up:
                    raise
            await self._sleep(wait)


class RetryingMutableStore(RetryingStore[MutableStore]):
    """The same for a MutableStore."""

    async def put(self, key: str, data: bytes) -> None:
        await self._repeat("put", lambda: self.inner.put(key, data))
        self.counters.bytes_written += len(data)

    async def keys(self, prefix: str) -> list[str]:
        return await self._repeat("list", lambda: self.inner.keys(prefix))

    async def sizes(self, prefix: str) -> dict[str, int]:
        return await self._repeat("list", lambda: self.inner.sizes(prefix))

    async def delete(self, keys: list[str]) -> None:
        await self._repeat("delete", lambda: self.inner.delete(keys))


async def _first(pieces: AsyncIterator[bytes]) -> tuple[AsyncIterator[bytes], bytes | None]:
    return pieces, await anext(pieces, None)
