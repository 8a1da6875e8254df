"""JSON logs, one object a line: ours by structlog, the libraries' by the same formatter."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import orjson
import structlog

QUIET = ("aiohttp.access", "kopf.activities", "kopf.objects", "botocore", "boto3", "urllib3")


def _to_json(event: object, default: Callable[[object], object], **_: object) -> str:
    return orjson.dumps(event, default=default, option=orjson.OPT_NON_STR_KEYS).decode()


def set_up_logging(level: str) -> None:
    """Send every log line of the process to stderr as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
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
