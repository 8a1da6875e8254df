"""The `Clock` port over the machine's clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Wall clock: compared with times that the API server wrote, so no monotonic one."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)
