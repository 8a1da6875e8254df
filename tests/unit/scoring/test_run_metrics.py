"""Metrics of a run: denominators, intervals, pass@k (evaluation.md §7)."""

from itertools import combinations

import pytest

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.run_results import TrialLine
from stayer_evaluator.scoring.run import estimate, pass_at_k, summarize


def metrics(resolved, tpr=0.5):
    return Metrics(
        resolved=resolved, tpr=tpr, tpr_ungated=tpr, depth=0.5, reg_events=1, recoveries=0,
        reg_rate=None, reg_final=0, rounds=1, sigma=(), completion_order=(), order_violations=0,
        order_diff=0, kendall_tau=None, units_cleared=1, units_total=2, cases_passed=1,
        cases_total=2,
    )  # fmt: skip


def line(task, attempt, resolved):
    return TrialLine(
        trial=f"{task}-{attempt}", task=task, agent="oracle", model=None, loop="outer",
        attempt=attempt, phase="Succeeded", valid=resolved is not None,
        failure_mode=FailureMode.NONE if resolved is not None else FailureMode.INFRA_ERROR,
        metrics=None if resolved is None else metrics(resolved),
    )  # fmt: skip


def report(lines):
    return summarize(
        namespace="ns", run="r", run_uid="u", benchmark="loops", test_visibility="attached",
        network="closed", trials=lines,
    )  # fmt: skip


def test_failed_trials_stay_in_the_denominator_of_the_resolve_rate():
    cell = report([line("a", 1, True), line("b", 1, None), line("c", 1, False)]).cells[0]

    assert cell.resolve_rate.mean == pytest.approx(1 / 3)
    assert cell.resolve_rate.count == 3
    assert (cell.scheduled, cell.resolved, cell.infra_errors) == (3, 1, 1)
    assert cell.tpr.count == 2, "metrics are means over the trials that have them, count printed"


def test_attempts_are_averaged_within_a_task_before_tasks_are():
    cell = report([line("a", 1, True), line("a", 2, False), line("b", 1, True)]).cells[0]

    assert cell.resolve_rate.mean == pytest.approx(0.75)
    assert set(cell.pass_at_k) == {"1"}, "k is bounded by the smallest number of attempts"


def test_the_report_does_not_depend_on_the_order_of_its_trials():
    lines = [line("b", 1, True), line("a", 2, False), line("a", 1, True)]

    assert report(lines) == report(reversed(lines))


def test_intervals_contain_the_mean_and_are_repeatable():
    values = [0.0, 1.0, 1.0, 0.0, 1.0]

    interval = estimate(values)

    assert interval.low <= interval.mean <= interval.high
    assert interval == estimate(values)
    assert estimate([]) is None


def test_tasks_that_are_all_alike_leave_no_doubt():
    for values in ([0.1], [0.1, 0.1, 0.1], [1.0] * 50):
        interval = estimate(values)

        assert (interval.low, interval.mean, interval.high) == (values[0],) * 3
        assert interval.count == len(values)


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (4, 0, 2), (4, 4, 4), (6, 5, 3)])
def test_pass_at_k_equals_the_share_of_subsets_with_a_success(n, c, k):
    subsets = list(combinations(range(n), k))
    share = sum(any(i < c for i in s) for s in subsets) / len(subsets)

    assert pass_at_k(n, c, k) == pytest.approx(share)


def test_pass_at_k_refuses_more_samples_than_attempts():
    with pytest.raises(ValueError, match="at least 3 attempts, found 2"):
        pass_at_k(2, 1, 3)
