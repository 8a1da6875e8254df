"""Small messages that are only hints: progress reports and termination messages."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import FailureMode


class ProgressReport(Record):
    """POSTed by a sidecar to `<progress>/v1/progress`; every number is cumulative for the trial
    as this sidecar knows it, so a lost report loses nothing.
    """

    trial: str
    role: Literal["a", "b"]
    incarnation: int
    round: int | None = None
    step: int | None = None
    round_seconds: tuple[float, ...] = Field(
        default=(), description="of the trial's finished rounds, in order"
    )
    snapshots_taken: int | None = None
    bytes_stored: int | None = None
    snapshots_adjudicated: int | None = None
    queue_depth: int | None = None
    units_cleared: int | None = None
    units_total: int | None = None
    regressions: int | None = None
    recoveries: int | None = None
    store_errors: int = 0
    store_requests: int = 0


class TerminationMessage(Record):
    """Written to /dev/termination-log by a sidecar; below 4096 bytes; a hint, never evidence."""

    kind: Literal["end", "results", "fenced", "error", "stopped"]
    reason: str = Field(default="", description="CamelCase for errors, e.g. IsolationNotEnforced")
    message: str = ""
    failure_mode: FailureMode | None = None
    rounds: int | None = None
    snapshots_taken: int | None = None
    snapshots_adjudicated: int | None = None
    resolved: bool | None = None
    valid: bool | None = None
    units_cleared: int | None = None
    units_total: int | None = None
    regressions: int | None = None
    recoveries: int | None = None
    accepted: bool | None = Field(default=None, description="inventory trials")
    problems: tuple[str, ...] = ()
