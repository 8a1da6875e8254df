"""What the end of a job means for the round (evaluation.md §6, §10.6). Pure."""

from dataclasses import dataclass
from signal import Signals, strsignal

from stayer_evaluator.harnesses.describe import CommandHarness
from stayer_evaluator.harnesses.transcripts.account import Account
from stayer_evaluator.records.jobs import JobResult
from stayer_evaluator.records.outcomes import FailureMode


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round ended."""

    failure_mode: FailureMode
    message: str = ""


def command_end(harness: CommandHarness, result: JobResult, account: Account) -> RoundEnd:
    """How a harness's run ended: the limit first, then proofs, then what it says itself.

    Exit codes are no verdict, and a transcript's word only names a failure, never undoes one.
    """
    if result.timed_out:
        return RoundEnd(FailureMode.AGENT_TIMEOUT, "the round's time is spent")
    if result.error and result.exit_code is None and result.signal is None:
        return RoundEnd(FailureMode.AGENT_STARTUP_ERROR, result.error)
    if account.failure_mode not in (None, FailureMode.NONE):
        assert account.failure_mode is not None
        return RoundEnd(account.failure_mode, account.message)
    if result.signal is not None:
        return _by_signal(result)
    if result.exit_code in harness.exit_codes:
        assert result.exit_code is not None
        return RoundEnd(harness.exit_codes[result.exit_code], f"exit status {result.exit_code}")
    if result.exit_code == 0:
        return RoundEnd(FailureMode.NONE)
    return RoundEnd(FailureMode.UNKNOWN_AGENT_ERROR, f"exit status {result.exit_code}")


def _by_signal(result: JobResult) -> RoundEnd:
    assert result.signal is not None
    if result.signal == Signals.SIGKILL and result.oom_kills > 0:
        return RoundEnd(FailureMode.AGENT_OOM, "killed at the container's memory limit")
    return RoundEnd(FailureMode.AGENT_KILLED, f"ended by signal {describe_signal(result.signal)}")


def describe_signal(number: int) -> str:
    """Number and name of a signal."""
    return f"{number} ({strsignal(number) or 'unknown'})" if 0 < number < 65 else str(number)


def describe_result(result: JobResult) -> str:
    """A job's end in a few words."""
    if result.timed_out:
        return "time limit"
    if result.error:
        return result.error
    if result.signal is not None:
        return f"signal {describe_signal(result.signal)}"
    return f"exit status {result.exit_code}"


def last_line(log: bytes, limit: int = 400) -> str:
    """The last line of a log that says something, printable and bounded."""
    lines = [line for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return "".join(c if c.isprintable() else " " for c in lines[-1][:limit])
