"""Every line of the process's log is one JSON object, whoever says it."""

import json
import subprocess
import sys

PROGRAM = """
import logging, structlog
from stayer_operator.telemetry.logs import set_up_logging
set_up_logging("info")
log = structlog.get_logger("ours")
log.debug("unheard")
log.info("applied", name="demo", actions={"CreatePod": 2})
log.warning("trying again", key=("lab", "demo"))
try:
    raise ValueError("broken")
except ValueError as error:
    log.exception("unexpected")
    log.error("ending", exc_info=error)
logging.getLogger("theirs").info("they said %s", "so")
logging.getLogger("theirs").debug("unheard")
"""


def test_ours_and_the_libraries_lines_look_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["logger"], line["level"], line["event"]) for line in lines] == [
        ("ours", "info", "applied"),
        ("ours", "warning", "trying again"),
        ("ours", "error", "unexpected"),
        ("ours", "error", "ending"),
        ("theirs", "info", "they said so"),
    ]
    assert lines[0]["actions"] == {"CreatePod": 2}
    assert lines[1]["key"] == ["lab", "demo"]
    assert all("ValueError: broken" in line["exception"] for line in lines[2:4])
    assert all(line["timestamp"].endswith("Z") for line in lines)


IN_A_LOOP = """
import asyncio, logging, os, structlog
from stayer_operator.telemetry.logs import set_up_logging
set_up_logging("info")
log = structlog.get_logger("ours")
async def main():
    log.info("one")
    log.info("two")
    logging.getLogger("theirs").info("three")
    log.info("four")
    log.error("five")
    {then}
    log.info("six")
asyncio.run(main())
"""


def events_of(then: str) -> list[str]:
    program = IN_A_LOOP.format(then=then)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return [json.loads(line)["event"] for line in done.stderr.splitlines()]


def test_lines_that_wait_for_others_keep_their_order_and_come_at_the_end() -> None:
    assert events_of("pass") == ["one", "two", "three", "four", "five", "six"]


def test_an_error_is_written_at_once_with_what_waited_before_it() -> None:
    assert events_of("os._exit(1)") == ["one", "two", "three", "four", "five"]
