"""Tells the person what is being done, how long it has taken and how long it usually takes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

MINUTE = 60.0


def spell_duration(seconds: float) -> str:
    """Seconds as a person says them: `8 s`, `1 min 30 s`, `12 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min" if rest == 0 else f"{minutes} min {rest} s"


@dataclass
class Step:
    """One that runs: since when, how long it usually takes, its log, when it was last spoken of."""

    started: float
    usual: float | None
    log: Path | None
    mentioned: float


class Console:
    """Plain lines, one a minute for what takes long, and in a terminal one kept up to date.

    Several steps may run at once in threads; all methods may be called from any of them.
    """

    def __init__(self, stream: TextIO | None = None, reminder_seconds: float = MINUTE) -> None:
        self._stream = stream or sys.stderr
        self._reminder = reminder_seconds
        self._lock = threading.Lock()
        self._running: dict[str, Step] = {}
        self._ticker: threading.Thread | None = None

    def say(self, text: str) -> None:
        """Print one line that stays."""
        with self._lock:
            self._line(text)

    @contextmanager
    def step(
        self, name: str, usual_seconds: float | None = None, log: Path | None = None
    ) -> Iterator[None]:
        """Announce a step, and say how long it took when its block ends without an error.

        Every minute until then: that it still runs, and where its log is.
        """
        usual = f" (usually {spell_duration(usual_seconds)})" if usual_seconds else ""
        self.say(f"{name} ...{usual}")
        started = time.monotonic()
        with self._lock:
            self._running[name] = Step(started, usual_seconds, log, started)
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, daemon=True)
                self._ticker.start()
        try:
            yield
        finally:
            with self._lock:
                del self._running[name]
        self.say(f"{name}: done in {spell_duration(time.monotonic() - started)}")

    def _tick(self) -> None:
        while True:
            time.sleep(min(1, self._reminder))
            with self._lock:
                if not self._running:
                    self._ticker = None
                    return
                now = time.monotonic()
                self._remind(now)
                if self._stream.isatty():
                    parts = [f"{n} {_progress(step, now)}" for n, step in self._running.items()]
                    self._wipe()
                    print("  " + "; ".join(parts), end="", file=self._stream, flush=True)

    def _remind(self, now: float) -> None:
        for name, step in self._running.items():
            if now - step.mentioned >= self._reminder:
                step.mentioned = now
                log = f"; log: {step.log}" if step.log else ""
                self._line(f"{name}: still at work, {_progress(step, now)}{log}")

    def _line(self, text: str) -> None:
        self._wipe()
        print(text, file=self._stream, flush=True)

    def _wipe(self) -> None:
        if self._stream.isatty():
            print("\r\x1b[K", end="", file=self._stream)


def _progress(step: Step, now: float) -> str:
    of_usual = f" of usually {spell_duration(step.usual)}" if step.usual else ""
    return f"{spell_duration(now - step.started)}{of_usual}"
