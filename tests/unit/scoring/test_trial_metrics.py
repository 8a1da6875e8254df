"""Metrics of a trial, each against a case small enough to check by hand (evaluation.md §6)."""

import pytest

from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.queue import EpisodeCursor, SnapshotEntry, Writer
from stayer_evaluator.records.task import Inventory, InventoryUnit, UnitRecord
from stayer_evaluator.records.verdict import UnitResult, Verdict
from stayer_evaluator.scoring.metrics import score
from stayer_evaluator.scoring.order import kendall_tau, order_diff

WRITER = Writer(incarnation=1, nonce="n")
# a -> b -> d, a -> c; `docs` has no tests and needs d.
UNITS = (
    UnitRecord(id="a", layer=0, has_tests=True),
    UnitRecord(id="b", layer=1, has_tests=True, prerequisites=("a",)),
    UnitRecord(id="c", layer=1, has_tests=True, prerequisites=("a",)),
    UnitRecord(id="d", layer=2, has_tests=True, prerequisites=("b",)),
    UnitRecord(id="docs", layer=3, has_tests=False, prerequisites=("d",)),
)
ORDER = ("a", "b", "c", "d", "docs")


def inventory():
    units = {
        u: InventoryUnit(cases=(f"{u}::1", f"{u}::2"), selectable=True, finder="folder")
        for u in "abcd"
    }
    return Inventory(
        task="t", digest="0" * 64, accepted=True, suite="pytest", units=units, base_manifest=""
    )


def result(unit, state, passed=2):
    statuses = [CaseStatus.PASSED] * passed + [CaseStatus.FAILED] * (2 - passed)
    cases = {f"{unit}::{i + 1}": s for i, s in enumerate(statuses)}
    return UnitResult(state=state, cases={} if state == UnitState.SEALED else cases)


def verdict(number, states, **events):
    results = {u: result(u, s, 2 if s == UnitState.PASS else 1) for u, s in states.items()}
    return Verdict(
        number=number,
        snapshot=number,
        tree="",
        trigger="every",
        diff_lines=0,
        threshold=0,
        results=results,
        writer=WRITER,
        started=0,
        ended=0,
        **events,
    )


def snapshot(number, *implemented):
    return SnapshotEntry(
        number=number,
        snapshot=number,
        writer=WRITER,
        time=0,
        episode=EpisodeCursor(),
        base="",
        tree="",
        files=0,
        bytes=0,
        implemented=implemented,
    )


P, F, S = UnitState.PASS, UnitState.FAIL, UnitState.SEALED


def test_a_solved_task_scores_one_everywhere():
    verdicts = [
        verdict(0, {"a": F, "b": S, "c": S, "d": S}),
        verdict(
            1,
            dict.fromkeys("abcd", P),
            cleared=("a", "b", "c", "d"),
            suite={u: result(u, P) for u in "abcd"},
        ),
    ]
    snapshots = [snapshot(0), snapshot(1, "a", "b", "c", "d", "docs")]

    metrics = score(UNITS, ORDER, inventory(), verdicts, snapshots, rounds=1)

    assert metrics.resolved
    assert (metrics.tpr, metrics.tpr_ungated, metrics.depth) == (1, 1, 1)
    assert metrics.sigma == ORDER
    assert (metrics.order_violations, metrics.order_diff, metrics.kendall_tau) == (0, 0, 1)
    assert (metrics.reg_rate, metrics.reg_final) == (0, 0)
    assert (metrics.units_cleared, metrics.units_total, metrics.cases_total) == (4, 4, 8)


def test_an_untouched_task_scores_zero_and_leaves_rates_undefined():
    verdicts = [verdict(0, {"a": F, "b": S, "c": S, "d": S})]

    metrics = score(UNITS, ORDER, inventory(), verdicts, [snapshot(0)], rounds=1)

    assert not metrics.resolved
    assert metrics.depth == 0
    assert metrics.tpr == 1 / 8, "one case of the released frontier unit passes"
    assert (metrics.reg_rate, metrics.reg_final, metrics.kendall_tau) == (None, None, None)


def test_a_regression_that_stays_counts_in_every_regression_metric():
    verdicts = [
        verdict(0, {"a": P, "b": P, "c": F, "d": F}, cleared=("a", "b")),
        verdict(1, {"a": P, "b": F, "c": P, "d": F}, cleared=("c",), regressions=("b",)),
        verdict(2, {"a": P, "b": P, "c": P, "d": F}, recoveries=("b",)),
        verdict(3, {"a": P, "b": F, "c": P, "d": F}, regressions=("b",)),
    ]
    snapshots = [snapshot(i) for i in range(4)]

    metrics = score(UNITS, ORDER, inventory(), verdicts, snapshots, rounds=1)

    assert (metrics.reg_events, metrics.recoveries) == (2, 1)
    assert metrics.reg_rate == pytest.approx(1 / 3), "one unit of the three ever cleared"
    assert metrics.reg_final == pytest.approx(1 / 3)
    assert metrics.completion_order == ("a", "b", "c")
    assert metrics.depth == 2 / 4, "a and c hold with all their ancestors: layer 1 of depth 4"


def test_depth_ignores_a_unit_whose_ancestor_fails():
    verdicts = [verdict(0, {"a": F, "b": P, "c": S, "d": P}, cleared=("a", "b", "d"))]

    metrics = score(UNITS, ORDER, inventory(), verdicts, [snapshot(0)], rounds=1)

    assert metrics.depth == 0


def test_working_out_of_order_shows_in_the_order_metrics():
    snapshots = [snapshot(0), snapshot(1, "d"), snapshot(2, "b", "d"), snapshot(3, "a", "b", "d")]
    verdicts = [verdict(3, {"a": P, "b": P, "c": F, "d": P}, cleared=("a", "b", "d"))]

    metrics = score(UNITS, ORDER, inventory(), verdicts, snapshots, rounds=1)

    assert metrics.sigma == ("d", "b", "a")
    assert metrics.order_violations == 2, "d before b and a; b before a"
    assert metrics.order_diff == 2, "a b d against d b a"
    assert metrics.kendall_tau == -1


def test_units_first_seen_in_one_snapshot_are_ordered_as_the_reference():
    snapshots = [snapshot(0, "c", "b", "unknown-slug")]
    verdicts = [verdict(0, {"a": F, "b": S, "c": S, "d": S})]

    metrics = score(UNITS, ORDER, inventory(), verdicts, snapshots, rounds=1)

    assert metrics.sigma == ("b", "c")


def test_extra_cases_and_missing_cases_never_pass():
    forged = UnitResult(
        state=UnitState.FAIL,
        cases={"a::1": CaseStatus.MISSING, "a::forged": CaseStatus.PASSED},
        extra_cases=("a::forged",),
    )
    verdicts = [verdict(0, {"b": S, "c": S, "d": S}).model_copy(update={"results": {"a": forged}})]

    metrics = score(UNITS, ORDER, inventory(), verdicts, [snapshot(0)], rounds=1)

    assert metrics.tpr == 0


def test_nothing_tested_is_never_resolved():
    units = (UnitRecord(id="docs", layer=0, has_tests=False),)
    empty = inventory().model_copy(update={"units": {}})

    metrics = score(units, ("docs",), empty, [verdict(0, {})], [snapshot(0, "docs")], rounds=1)

    assert not metrics.resolved
    assert (metrics.tpr, metrics.depth) == (None, 0)


def test_scoring_without_a_verdict_is_refused():
    with pytest.raises(ValueError, match="without a verdict"):
        score(UNITS, ORDER, inventory(), [], [], rounds=1)


@pytest.mark.parametrize(
    ("sigma", "tau", "diff"),
    [
        pytest.param(("a",), None, 0, id="one unit has no pairs"),
        pytest.param(("a", "b", "c", "d"), 1.0, 0, id="the reference order itself"),
        pytest.param(("b", "a", "c", "d"), 4 / 6, 2, id="one swapped pair of six"),
        pytest.param(("d", "c", "b", "a"), -1.0, 4, id="reversed"),
    ],
)
def test_order_metrics_by_hand(sigma, tau, diff):
    assert kendall_tau(sigma, ORDER) == (None if tau is None else pytest.approx(tau))
    assert order_diff(sigma, ORDER) == diff
