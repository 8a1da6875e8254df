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
