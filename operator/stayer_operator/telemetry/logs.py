"""JSON logs, one object a line: ours written straight away, the libraries' by way of `logging`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import orjson
import structlog

QUIET = ("aiohttp.access", "kopf.activities", "kopf.objects", "botocore", "boto3", "urllib3")


def _to_bytes(event: object, default: Callable[[object], object], **_: object) -> bytes:
    return orjson.dumps(
        event, default=default, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    )


def _to_json(event: object, default: Callable[[object], object], **more: object) -> str:
    return _to_bytes(event, default, **more).decode().rstrip()


class _Lines:
    """Writes finished lines to stderr. `name` is the module that logs."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def msg(self, line: bytes) -> None:
        """One line, at once: what a process says last tells why it died."""
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()

    debug = info = warning = error = critical = exception = msg


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
    handler = logging.StreamHandler(sys.stderr)
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
