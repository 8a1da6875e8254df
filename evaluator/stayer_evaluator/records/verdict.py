"""Verdicts: `verdicts/<queue number>`, create-only; the loser of a race adopts the winner's."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.queue import Writer


class UnitResult(Record):
    """What the tests of one unit said on one snapshot."""

    state: UnitState
    cases: dict[str, CaseStatus] = Field(default_factory=dict)
    seconds: float = 0
    flaky: bool = Field(default=False, description="a flip that its rerun did not confirm")
    extra_cases: tuple[str, ...] = Field(default=(), description="ids the inventory lacks")
    evidence: str = Field(default="", description="oom, timeout, disk, pids, canary, grader_lost")


class CanaryResult(Record):
    """One canary: a case whose outcome is known."""

    name: str
    when: Literal["before", "after"]
    expected: CaseStatus
    seen: CaseStatus

    @property
    def held(self) -> bool:
        return self.expected == self.seen


class Verdict(Record):
    """One adjudicated snapshot. From the verdicts in number order the gate's state follows."""

    schema_version: Literal["stayer.dev/verdict/v1"] = "stayer.dev/verdict/v1"
    number: int = Field(ge=0, description="queue number of the snapshot")
    snapshot: int = Field(ge=0)
    tree: str
    trigger: Literal["first", "threshold", "every", "last", "newest"]
    diff_lines: int = Field(ge=0)
    threshold: int = Field(ge=0)
    last: bool = False
    coalesced: tuple[int, ...] = Field(default=(), description="queue numbers skipped before it")
    results: dict[str, UnitResult] = Field(description="unit id -> result; sealed units too")
    cleared: tuple[str, ...] = Field(default=(), description="units that entered C, in order")
    regressions: tuple[str, ...] = ()
    recoveries: tuple[str, ...] = ()
    suite: dict[str, UnitResult] = Field(
        default_factory=dict, description="last snapshot only: the whole suite, ungated"
    )
    canaries: tuple[CanaryResult, ...] = ()
    tamper: tuple[str, ...] = ()
    grader_lost: bool = False
    writer: Writer
    started: float
    ended: float
    environment: dict[str, str] = Field(
        default_factory=dict, description="user namespace, effective limits, runner version"
    )
