"""JSON logs, one object a line: ours written straight away, the libraries' by way of `logging`."""

from __future__ import annotations

import asyncio
import atexit
import logging
import sys
from collections.abc import Callable
from typing import TextIO

import orjson
import structlog

QUIET = ("aiohttp.access", "kopf.activities", "kopf.objects", "botocore", "boto3", "urllib3")
FLUSH_SECONDS = 0.5


def _to_bytes(event: object, default: Callable[[object], object], **_: object) -> bytes:
    return orjson.dumps(
        event, default=default, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    )


def _to_json(event: object, default: Callable[[object], object], **more: object) -> str:
    return _to_bytes(event, default, **more).decode().rstrip()


class _Stderr:
    """Lines on their way to stderr. Those of `info` may wait for others, `FLUSH_SECONDS` at most:
    a write for each costs as much as making it. What a process says last tells why it died, so
    everything from `warning` on is written at once, after what waits.
    """

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def put(self, line: bytes) -> None:
        """Write it soon; at once where no event loop runs."""
        self._waiting.append(line)
        if len(self._waiting) > 1:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            loop.call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what waits."""
        lines, self._waiting = self._waiting, []
        if lines:
            sys.stderr.buffer.write(b"".join(lines))
            sys.stderr.buffer.flush()


_stderr = _Stderr()


class _Lines:
    """Takes finished lines. `name` is the module that logs."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def msg(self, line: bytes) -> None:
        """One line that may wait a little."""
        _stderr.put(line)

    def urgent(self, line: bytes) -> None:
        """One line, at once."""
        _stderr.put(line)
        _stderr.flush()

    debug = info = msg
    warning = error = critical = exception = urgent


class _InOrder(logging.StreamHandler[TextIO]):
    """The libraries' lines, after those of ours that wait."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        _stderr.flush()
        super().emit(record)


def set_up_logging(level: str) -> None:
    """Send every log line of the process to stderr as JSON."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_to_bytes)],
        logger_factory=_Lines,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        cache_logger_on_first_use=True,
    )
    atexit.register(_stderr.flush)
    handler = _InOrder(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_to_json),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # They tell every request and every event; kept for `debug`.
    for name in QUIET:
        logging.getLogger(name).setLevel("DEBUG" if level == "debug" else "WARNING")
