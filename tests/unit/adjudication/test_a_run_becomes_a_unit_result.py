from __future__ import annotations

import pytest

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.adjudication.results import Run, judge
from stayer_evaluator.records.jobs import JobResult
from stayer_evaluator.records.outcomes import CaseStatus
from stayer_evaluator.records.task import InventoryUnit

UNIT = InventoryUnit(cases=("a", "b"), selectable=True, finder="folder", skipped=("s",))


def run(cases: dict[str, str], *, complete: bool = True, strict: bool = True, **job: object) -> Run:
    facts: dict[str, object] = {"id": "j", "kind": "exec", "started": 10, "ended": 12.5,
                                "exit_code": 0, **job}  # fmt: skip
    parsed = {name: CaseStatus(status) for name, status in cases.items()}
    return Run(
        job=JobResult.model_validate(facts),
        parsed=Parsed(cases=parsed, complete=complete),
        strict_exit=strict,
    )


BOTH = {"a": "passed", "b": "passed"}


@pytest.mark.parametrize(
    ("made", "state", "evidence"),
    [
        pytest.param(run(BOTH), "pass", "", id="every expected case passed"),
        pytest.param(run({**BOTH, "s": "skipped"}), "pass", "", id="gold skips it too"),
        pytest.param(run({"a": "passed", "b": "failed"}, exit_code=1), "fail", "", id="one failed"),
        pytest.param(run({"a": "passed"}), "error", "", id="one is missing"),
        pytest.param(run({"a": "passed", "b": "error"}, exit_code=1), "error", "", id="one error"),
        pytest.param(run({"a": "passed", "b": "skipped"}), "error", "", id="one skipped"),
        pytest.param(run({"a": "skipped", "b": "skipped"}), "error", "", id="skipped only"),
        pytest.param(run({}), "error", "", id="no parseable result"),
        pytest.param(run(BOTH, complete=False), "error", "", id="the log breaks off"),
        pytest.param(run(BOTH, exit_code=1), "error", "exit_code", id="the exit code disagrees"),
        pytest.param(run(BOTH, exit_code=1, strict=False), "pass", "", id="a masked run's exit"),
        pytest.param(run(BOTH, exit_code=None, signal=9), "error", "", id="ended by a signal"),
        pytest.param(run({}, exit_code=None, signal=9, oom_kills=1), "error", "oom",
                     id="out of its own memory"),
        pytest.param(run(BOTH, timed_out=True, exit_code=None), "timeout", "timeout",
                     id="a timeout, whatever was printed"),
        pytest.param(run(BOTH, stopped=True), "invalid", "stopped", id="stopped from outside"),
        pytest.param(run(BOTH, error="no such file"), "invalid", "environment",
                     id="it could not be started"),
    ],
)  # fmt: skip
def test_state(made: Run, state: str, evidence: str) -> None:
    result = judge(UNIT, made)
    assert (result.state.value, result.evidence) == (state, evidence)
    assert result.seconds == 2.5


def test_missing_cases_are_said_and_extra_passes_are_evidence() -> None:
    result = judge(UNIT, run({"a": "passed", "x": "passed", "y": "failed", "s": "passed"}))
    assert {name: status.value for name, status in result.cases.items()} == {
        "a": "passed", "b": "missing",
    }  # fmt: skip
    assert result.extra_cases == ("x",)


def test_a_unit_without_cases_never_passes() -> None:
    empty = InventoryUnit(cases=(), selectable=True, finder="folder")
    assert judge(empty, run({})).state.value == "error"


def test_a_timeout_has_no_passed_case() -> None:
    result = judge(UNIT, run(BOTH, timed_out=True))
    assert set(result.cases.values()) == {CaseStatus.MISSING}
