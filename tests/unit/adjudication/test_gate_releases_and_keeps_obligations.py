from __future__ import annotations

import pytest

from makers_gate import Column, drive, make_gate, replay, result, verdict_of
from stayer_evaluator.adjudication.gate import GateState, invalidated
from stayer_evaluator.records.outcomes import UnitState

# a ─▶ b ─▶ d
#  ╰─▶ c ──╯   e stands alone
GATE = make_gate("abcde", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


def cleared(*units: str, passing: str | None = None) -> GateState:
    kept = units if passing is None else tuple(passing)
    return GateState(cleared=units, passing=frozenset(kept))


def states(checkpoint: object) -> dict[str, str]:
    return {u: r.state.value for u, r in checkpoint.results.items()}  # type: ignore[attr-defined]


def test_only_the_frontier_is_run_and_the_rest_is_sealed() -> None:
    column = Column({})
    checkpoint = drive(GATE, GateState(), column)
    assert column.order == ["a", "e"]
    assert states(checkpoint) == {
        "a": "fail", "b": "sealed", "c": "sealed", "d": "sealed", "e": "fail",
    }  # fmt: skip
    assert checkpoint.cleared == ()


def test_one_snapshot_releases_layer_after_layer_to_a_fixed_point() -> None:
    column = Column({}, default="pass")
    checkpoint = drive(GATE, GateState(), column)
    assert column.order == ["a", "e", "b", "c", "d"]
    assert checkpoint.cleared == ("a", "e", "b", "c", "d")
    assert checkpoint.regressions == checkpoint.recoveries == ()


def test_work_behind_a_closed_gate_stays_sealed_however_right_it_is() -> None:
    checkpoint = drive(GATE, GateState(), Column({"a": "pass", "b": "pass", "d": "pass"}))
    assert checkpoint.cleared == ("a", "b")
    assert states(checkpoint)["d"] == "sealed"


def test_obligations_are_run_before_the_frontier() -> None:
    column = Column({}, default="pass")
    drive(GATE, cleared("a", "b"), column)
    assert [(ask.unit, ask.why) for ask in column.asked] == [
        ("a", "obligation"), ("b", "obligation"), ("c", "frontier"), ("e", "frontier"),
        ("d", "frontier"),
    ]  # fmt: skip


def test_a_regression_is_run_twice_and_seals_nothing() -> None:
    column = Column({"a": "fail", "b": "pass", "c": "pass", "d": "pass"})
    checkpoint = drive(GATE, cleared("a", "b"), column)
    assert [ask.why for ask in column.asked if ask.unit == "a"] == ["obligation", "confirm"]
    assert checkpoint.regressions == ("a",)
    assert checkpoint.cleared == ("c", "d")
    assert checkpoint.state.passing == {"b", "c", "d"}


@pytest.mark.parametrize("kind", ["fail", "error", "timeout"])
def test_every_flip_from_pass_is_a_regression(kind: str) -> None:
    checkpoint = drive(GATE, cleared("a"), Column({"a": kind}))
    assert checkpoint.regressions == ("a",)
    assert states(checkpoint)["a"] == kind


def test_a_regression_is_counted_once_and_its_end_is_a_recovery() -> None:
    first = drive(GATE, cleared("a"), Column({"a": "fail"}))
    second = drive(GATE, first.state, Column({"a": "error"}))
    third = drive(GATE, second.state, Column({"a": "pass"}))
    assert (second.regressions, second.recoveries) == ((), ())
    assert (third.regressions, third.recoveries) == ((), ("a",))


def test_a_unit_that_is_not_passing_is_run_once_only() -> None:
    column = Column({"a": "fail"})
    drive(GATE, cleared("a", passing=""), column)
    assert column.order.count("a") == 1


def test_a_flip_that_its_second_run_does_not_confirm_is_flaky_and_no_event() -> None:
    checkpoint = drive(GATE, cleared("a"), Column({"a": ["fail", "pass"]}))
    assert checkpoint.results["a"].flaky
    assert states(checkpoint)["a"] == "pass"
    assert checkpoint.regressions == ()
    assert checkpoint.state.passing == {"a"}


def test_a_confirmed_flip_keeps_its_first_outcome() -> None:
    checkpoint = drive(GATE, cleared("a"), Column({"a": ["timeout", "fail"]}))
    assert states(checkpoint)["a"] == "timeout"


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        pytest.param(["invalid", "pass"], "pass", id="done again with success"),
        pytest.param(["invalid", "invalid"], "invalid", id="invalid twice stays"),
        pytest.param(["fail", "invalid", "invalid"], "invalid", id="an invalid confirmation"),
        pytest.param(["invalid", "fail", "fail"], "fail", id="an invalid run, then a regression"),
    ],
)
def test_invalid_runs_are_done_again_and_are_no_event(runs: list[str], state: str) -> None:
    checkpoint = drive(GATE, cleared("a"), Column({"a": runs}))
    assert states(checkpoint)["a"] == state
    assert checkpoint.regressions == (("a",) if state == "fail" else ())
    assert ("a" in checkpoint.state.passing) == (state != "fail")


def test_reruns_want_a_fresh_tree() -> None:
    column = Column({"a": ["invalid", "fail", "fail"]})
    drive(GATE, cleared("a"), column)
    assert [(ask.why, ask.fresh) for ask in column.asked[:3]] == [
        ("obligation", False), ("again", True), ("confirm", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "evidence", "state"),
    [
        pytest.param(False, "oom", "invalid", id="before the end it waits"),
        pytest.param(True, "oom", "error", id="at the end the candidate's own limit decides"),
        pytest.param(True, "disk", "error", id="so does its disk"),
        pytest.param(True, "environment", "invalid", id="a fault of ours decides nothing"),
    ],
)
def test_evidence_at_the_last_snapshot(last: bool, evidence: str, state: str) -> None:
    column = Column({"a": "invalid"}, evidence=evidence)
    checkpoint = drive(GATE, cleared("a"), column, last=last)
    assert states(checkpoint)["a"] == state
    assert checkpoint.regressions == (("a",) if state == "error" else ())


class TestTransparentUnits:
    gate = make_gate("abc", [("a", "b"), ("b", "c")], untested="b")

    def test_they_clear_with_their_prerequisites_and_are_never_run(self) -> None:
        column = Column({}, default="pass")
        checkpoint = drive(self.gate, GateState(), column)
        assert column.order == ["a", "c"]
        assert checkpoint.cleared == ("a", "b", "c")
        assert states(checkpoint)["b"] == "pass"

    def test_they_stay_sealed_behind_a_closed_gate(self) -> None:
        assert states(drive(self.gate, GateState(), Column({})))["b"] == "sealed"

    def test_they_stay_cleared_when_their_prerequisite_regresses(self) -> None:
        checkpoint = drive(self.gate, cleared("a", "b", passing="a"), Column({}))
        assert states(checkpoint) == {"a": "fail", "b": "pass", "c": "fail"}
        assert checkpoint.regressions == ("a",)

    def test_a_task_of_nothing_else_is_cleared_at_once(self) -> None:
        checkpoint = drive(make_gate("ab", [("a", "b")], untested="ab"), GateState(), Column({}))
        assert checkpoint.cleared == ("a", "b")


class TestAGraderThatIsLost:
    def test_what_would_have_run_is_invalid_and_nothing_happens(self) -> None:
        before = cleared("a", "b", passing="a")
        checkpoint = invalidated(GATE, before, {}, "grader_lost")
        assert states(checkpoint) == {
            "a": "invalid", "b": "invalid", "c": "invalid", "d": "sealed", "e": "invalid",
        }  # fmt: skip
        assert {r.evidence for r in checkpoint.results.values()} == {"grader_lost", ""}
        assert (checkpoint.cleared, checkpoint.regressions, checkpoint.state) == ((), (), before)
        assert not checkpoint.valid

    def test_evidence_against_the_candidate_decides_at_the_end(self) -> None:
        checkpoint = invalidated(GATE, cleared("a"), {"a": "oom"}, "canary", last=True)
        assert states(checkpoint)["a"] == "error"
        assert states(checkpoint)["b"] == "invalid"
        assert checkpoint.regressions == ("a",)


def test_verdicts_rebuild_the_state_of_the_gate() -> None:
    columns = [
        Column({"a": "pass"}),
        Column({"a": "pass", "b": "pass", "c": "pass", "d": "pass"}),
        Column({"a": "fail", "b": "pass", "c": "invalid", "d": "pass", "e": "pass"}),
    ]
    state, verdicts = GateState(), []
    for number, column in enumerate(columns):
        checkpoint = drive(GATE, state, column)
        verdicts.append(verdict_of(checkpoint, number))
        state = checkpoint.state
    assert replay(GATE, verdicts) == state
    assert state == GateState(cleared=("a", "b", "c", "d", "e"), passing=frozenset("bcde"))


def test_a_result_that_is_not_pass_never_clears() -> None:
    for kind in UnitState:
        if kind is not UnitState.PASS:
            checkpoint = drive(GATE, GateState(), lambda _ask, kind=kind: result(kind))
            assert checkpoint.cleared == ()
