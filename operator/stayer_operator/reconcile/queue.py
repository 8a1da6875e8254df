"""A queue of keys: each once, one worker a key, back-off by key, one bucket for all retries.

A plain data structure without clock or tasks; the loop asks it what may be worked on now.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from stayer_operator.core.trial.backoff import fraction

K = TypeVar("K", bound=Hashable)

SPARE_TIMERS = 256
"""Timers that wait for nothing any more and are kept, besides as many as wait for something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPace:
    """How failing keys come back. Seconds and retries."""

    first: float = 0.25
    longest: float = 60.0
    rate: float = 10.0  # retries a second over all keys, on average
    burst: int = 100


class WorkQueue(Generic[K]):
    """Keys that wait, keys under way, and keys that come back later.

    A key added while it is being worked on is given out again after `done`. A key added for later
    twice comes at the earlier time.
    """

    def __init__(self, pace: RetryPace | None = None) -> None:
        self._pace = pace or RetryPace()
        self._ready: dict[K, None] = {}
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._order = count()
        self._failures: dict[K, int] = {}
        self._bucket_free_at = 0.0

    def __len__(self) -> int:
        return len(self._ready) + len(self._again)

    def add(self, key: K) -> None:
        """Work on it as soon as possible."""
        if key in self._busy:
            self._again.add(key)
        else:
            self._ready[key] = None

    def add_at(self, key: K, when: float) -> None:
        """Work on it at `when`, unless something brings it up before."""
        if key in self._due and self._due[key] <= when:
            return
        self._due[key] = when
        heapq.heappush(self._timers, (when, next(self._order), key))
        if len(self._timers) > 2 * len(self._due) + SPARE_TIMERS:
            self._drop_dead_timers()

    def take(self, now: float) -> K | None:
        """The next key to work on; None when nothing may be worked on now. Call `done` later.

        A key that is taken has no timer any more: its next plan sets a new one.
        """
        self._expire(now)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._busy.add(key)
        self._due.pop(key, None)
        return key

    def done(self, key: K) -> None:
        """Work on it has ended."""
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self._ready[key] = None

    def next_time(self) -> float | None:
        """When the first timer rings; None when none is set."""
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def retry(self, key: K, now: float) -> float:
        """It failed: bring it back after its own back-off and the bucket's; returns the wait."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        own = min(self._pace.longest, self._pace.first * 2.0 ** min(failures - 1, 32))
        own *= 0.5 + fraction(repr(key), failures) / 2
        wait = max(own, self._wait_for_token(now))
        self.add_at(key, now + wait)
        return wait

    def succeeded(self, key: K) -> None:
        """Its next failure is a first one."""
        self._failures.pop(key, None)

    def _wait_for_token(self, now: float) -> float:
        """A bucket of `burst` tokens, kept as the time at which it would be empty of debts."""
        full = self._pace.burst / self._pace.rate
        self._bucket_free_at = max(self._bucket_free_at, now - full) + 1 / self._pace.rate
        return max(0.0, self._bucket_free_at - now)

    def _drop_dead_timers(self) -> None:
        """Every pass over a key leaves the timer of the last one behind, hours ahead mostly."""
        self._timers = [timer for timer in self._timers if self._due.get(timer[2]) == timer[0]]
        heapq.heapify(self._timers)

    def _expire(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            when, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == when:
                del self._due[key]
                self.add(key)
