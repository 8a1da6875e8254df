"""Tells the person what is being done, how long it has taken and how long it usually takes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def spell_duration(seconds: float) -> str:
    """Seconds as a person says them: `8 s`, `1 min 30 s`, `12 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min" if rest == 0 else f"{minutes} min {rest} s"


class Console:
    """Plain lines, and in a terminal one more line that is kept up to date.

    Several steps may run at once in threads; all methods may be called from any of them.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._running: dict[str, tuple[float, float | None]] = {}
        self._ticker: threading.Thread | None = None

    def say(self, text: str) -> None:
        """Print one line that stays."""
        with self._lock:
            self._wipe()
            print(text, file=self._stream, flush=True)

    @contextmanager
    def step(self, name: str, usual_seconds: float | None = None) -> Iterator[None]:
        """Announce a step, and say how long it took when its block ends without an error."""
        usual = f" (usually {spell_duration(usual_seconds)})" if usual_seconds else ""
        self.say(f"{name} ...{usual}")
        started = time.monotonic()
        with self._lock:
            self._running[name] = (started, usual_seconds)
        self._start_ticker()
        try:
            yield
        finally:
            with self._lock:
                del self._running[name]
        self.say(f"{name}: done in {spell_duration(time.monotonic() - started)}")

    def _start_ticker(self) -> None:
        if self._ticker is None and self._stream.isatty():
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def _tick(self) -> None:
        while True:
            time.sleep(1)
            with self._lock:
                if not self._running:
                    continue
                now = time.monotonic()
                parts = [self._progress(name, now) for name in self._running]
                self._wipe()
                print("  " + "; ".join(parts), end="", file=self._stream, flush=True)

    def _progress(self, name: str, now: float) -> str:
        started, usual = self._running[name]
        of_usual = f" of usually {spell_duration(usual)}" if usual else ""
        return f"{name} {spell_duration(now - started)}{of_usual}"

    def _wipe(self) -> None:
        if self._stream.isatty():
            print("\r\x1b[K", end="", file=self._stream)
