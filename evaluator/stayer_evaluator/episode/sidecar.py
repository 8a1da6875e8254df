"""What recorder and adjudicator share as programs: start, signals, messages, their last minute."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import structlog

from stayer_evaluator.episode.config import BadSettings, RecorderSettings, read_settings
from stayer_evaluator.episode.progress import ProgressSender
from stayer_evaluator.logs import log_as_json
from stayer_evaluator.records.exits import DONE, FAILED, STOPPED
from stayer_evaluator.records.reports import ProgressReport, TerminationMessage

MESSAGE_BYTES = 4000
"""The kubelet cuts termination messages at 4,096 bytes."""
LINGER_SECONDS = 120.0
"""After the quit job the kubelet ends the sidecar within seconds; exiting before it does would only
have it started again."""

log = structlog.get_logger(__name__)


def run_sidecar(
    name: str,
    serve: Callable[[RecorderSettings], Coroutine[Any, Any, int]],
    judge: Callable[[Exception], tuple[int, TerminationMessage]],
) -> int:
    """The process from its environment to its exit status. `judge` words what nobody expected."""
    log_as_json()
    try:
        settings = read_settings(os.environ)
    except BadSettings as error:
        sys.stderr.write(f"{name}: {error}\n")
        return FAILED
    try:
        return asyncio.run(serve(settings))
    except Exception as error:  # the edge: whatever it is, it gets a message
        log.exception("failed", program=name)
        write_message(settings.places.termination_log, judge(error)[1])
        return FAILED


async def run_and_linger(run: Callable[[], Awaitable[int]], on_stop: Callable[[], None]) -> int:
    """Run to the end, then wait for the kubelet. `on_stop` hears a signal to stop."""
    stopped = asyncio.Event()

    def on_signal() -> None:
        on_stop()
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    code = await run()
    if code in (DONE, STOPPED):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await stopped.wait()
    return code


@contextlib.asynccontextmanager
async def reporting(
    settings: RecorderSettings, current: Callable[[], ProgressReport]
) -> AsyncIterator[None]:
    """Progress reports meanwhile, and one at the end."""
    sender = _sender(settings, current)
    sending = asyncio.create_task(sender.run())
    try:
        yield
    finally:
        sending.cancel()
        await sender.close()


async def until_over(settings: RecorderSettings, current: Callable[[], ProgressReport]) -> None:
    """Returns once the operator says that the trial is over: it was deleted."""
    sender = _sender(settings, current)
    try:
        await sender.until_over()
    finally:
        await sender.hang_up()


def _sender(settings: RecorderSettings, current: Callable[[], ProgressReport]) -> ProgressSender:
    timing, token = settings.timing, settings.places.token
    return ProgressSender(settings.progress_url, token, current, timing.progress_interval)


def error_message(reason: str, text: str) -> TerminationMessage:
    """Of a sidecar that failed; `reason` in CamelCase."""
    return TerminationMessage(kind="error", reason=reason, message=text)


def write_message(path: Path, message: TerminationMessage) -> None:
    """Leave the message for the kubelet; a hint, so trouble is only logged."""
    try:
        path.write_bytes(fitted(message))
    except OSError as error:
        log.warning("no termination message", error=str(error))


def fitted(message: TerminationMessage) -> bytes:
    """The message's bytes; problems dropped and then the text shortened until they fit."""
    data = message.to_bytes()
    problems = tuple(problem[:300] for problem in message.problems)
    text = message.message
    while len(data) > MESSAGE_BYTES and (problems or text):
        if problems:
            problems, text = problems[:-1], text[:200]
        else:
            text = text[: len(text) // 2]
        data = message.model_copy(update={"problems": problems, "message": text}).to_bytes()
    return data
