"""How a round of a command harness ended."""

import pytest

from stayer_evaluator.episode.drive_command import read_below
from stayer_evaluator.episode.outcome import command_end, describe_result, last_line
from stayer_evaluator.harnesses.describe import CommandHarness
from stayer_evaluator.harnesses.transcripts.account import Account
from stayer_evaluator.records.jobs import JobResult
from stayer_evaluator.records.outcomes import FailureMode

HARNESS = CommandHarness(
    kind="command",
    name="x",
    command=("x",),
    exit_codes={0: FailureMode.NONE, 53: FailureMode.BUDGET_EXHAUSTED},
)


def result(**fields: object) -> JobResult:
    return JobResult(
        **{"id": "j", "kind": "exec", "started": 0, "ended": 1, "exit_code": None, **fields}
    )


@pytest.mark.parametrize(
    ("job", "account", "expected"),
    [
        pytest.param(result(exit_code=0), Account(), "none", id="a clean exit"),
        pytest.param(result(exit_code=2), Account(), "unknown_agent_error", id="a bad exit"),
        pytest.param(result(exit_code=53), Account(), "budget_exhausted", id="a known exit"),
        pytest.param(
            result(timed_out=True, signal=9), Account(), "agent_timeout", id="the round's limit"
        ),
        pytest.param(
            result(timed_out=True, signal=9), Account(FailureMode.AGENT_AUTH_ERROR),
            "agent_timeout", id="the limit whatever the transcript says",
        ),
        pytest.param(
            result(error="no such file"), Account(), "agent_startup_error", id="no start"
        ),
        pytest.param(
            result(exit_code=0), Account(FailureMode.AGENT_RATE_LIMITED), "agent_rate_limited",
            id="exit 0 although the transcript names a failure",
        ),
        pytest.param(
            result(exit_code=1), Account(FailureMode.NONE), "unknown_agent_error",
            id="a transcript undoes no failure",
        ),
        pytest.param(result(signal=11), Account(), "agent_killed", id="a signal"),
        pytest.param(result(signal=9), Account(), "agent_killed", id="killed without OOM"),
        pytest.param(result(signal=9, oom_kills=1), Account(), "agent_oom", id="killed by OOM"),
        pytest.param(
            result(exit_code=0, oom_kills=1), Account(), "none", id="only a tool was killed by OOM"
        ),
    ],
)  # fmt: skip
def test_the_end_is_named(job, account, expected):
    assert command_end(HARNESS, job, account).failure_mode.value == expected


def test_results_are_described_in_a_few_words():
    assert describe_result(result(exit_code=3)) == "exit status 3"
    assert describe_result(result(signal=9)) == "signal 9 (Killed)"
    assert describe_result(result(signal=999)) == "signal 999"
    assert describe_result(result(timed_out=True, signal=9)) == "time limit"
    assert describe_result(result(error="cannot")) == "cannot"


def test_the_last_line_is_bounded_and_printable():
    assert last_line(b"first\nlast \x1b[31mred\n\n  \n") == "last  [31mred"
    assert last_line(b"\xff" * 1000) == "�" * 400
    assert last_line(b"\n") == ""


def test_transcripts_are_read_through_no_link(tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/log").write_text("hello")
    (tmp_path / "link").symlink_to("dir")
    (tmp_path / "dir/also").symlink_to("log")

    assert read_below(tmp_path, "dir/log", 3) == b"hel"
    for path in ("dir", "none", "link/log", "dir/also", "dir/log/x", "none/x"):
        assert read_below(tmp_path, path, 3) == b""
