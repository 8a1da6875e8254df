"""Progress reports: for eyes only, never waited for, losses counted and forgotten.

One answer means something: 410, the trial is over, and nothing that is still to be saved is wanted.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import httpx

from stayer_evaluator.records.reports import ProgressReport

TIMEOUT = httpx.Timeout(3.0)
OVER = 410


class ProgressSender:
    """Sends what `current` gives whenever it changed, at most once an interval."""

    def __init__(
        self,
        url: str,
        token: Path,
        current: Callable[[], ProgressReport],
        interval: float,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.sent = 0
        self.lost = 0
        self._url = url
        self._token = token
        self._current = current
        self._interval = interval
        self._last: ProgressReport | None = None
        # Neither a proxy of the image's environment nor, without TLS, any certificates.
        self._client = httpx.AsyncClient(
            base_url=url,
            timeout=TIMEOUT,
            transport=transport,
            trust_env=False,
            verify=bool(url) and not url.startswith("http:"),
        )

    async def run(self) -> None:
        """Until cancelled."""
        while self._url:
            await self.send()
            await asyncio.sleep(self._interval)

    async def until_over(self) -> None:
        """Ask until the answer is that the trial is over: its run or Trial was deleted."""
        while True:
            if self._url and await self._post(self._current()) == OVER:
                return
            await asyncio.sleep(self._interval)

    async def send(self) -> None:
        """Send the present report if it is news."""
        report = self._current()
        if self._url and report != self._last:
            await self._post(report)

    async def _post(self, report: ProgressReport) -> int | None:
        """The answer's status; None without one."""
        try:
            answer = await self._client.post(
                "/v1/progress",
                content=report.to_bytes(),
                headers={
                    "Authorization": f"Bearer {self._token.read_text().strip()}",
                    "Content-Type": "application/json",
                },
            )
        except (httpx.HTTPError, OSError, ValueError):  # ValueError: a token that is no text
            self.lost += 1
            return None
        if answer.status_code == 204:
            self.sent += 1
            self._last = report
        else:
            self.lost += 1
        return answer.status_code

    async def close(self) -> None:
        """One last try, then let go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3.0):
                await self.send()
        await self.hang_up()

    async def hang_up(self) -> None:
        """Let go at once."""
        await self._client.aclose()
