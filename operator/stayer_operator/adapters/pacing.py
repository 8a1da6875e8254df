"""One token bucket for all requests of the process, which also obeys the server's Retry-After."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class TokenBucket:
    """At most `rate` requests a second on average and `burst` at once.

    `hold(seconds)` stops everybody for a while: what a 429 asks for concerns the whole client.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(burst)
        self._filled_at = clock()

    async def take(self) -> None:
        """Wait for a token. Waiters are served in the order in which they came."""
        self._fill()
        self._tokens -= 1
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._rate)

    def hold(self, seconds: float) -> None:
        """Let nobody pass for `seconds`, beyond whoever is waiting already."""
        self._fill()
        self._tokens = min(self._tokens, -seconds * self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
