"""Metrics of a run (evaluation.md §7)."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.run_results import CellSummary, Estimate, RunResults, TrialLine

RESAMPLES = 2000


def pass_at_k(attempts: int, resolved: int, k: int) -> float:
    """Unbiased estimate 1 - C(n-c, k)/C(n, k) for one task with n attempts, c of them resolved.

    Raises:
        ValueError: k is larger than the number of attempts.
    """
    if not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} needs at least {k} attempts, found {attempts}")
    return 1 - comb(attempts - resolved, k) / comb(attempts, k)


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean with a percentile bootstrap interval over tasks; null without values.

    The generator is seeded with the sample size alone: equal results give equal tables.
    """
    if not values:
        return None
    if min(values) == max(values):  # every sample is alike
        return Estimate(mean=values[0], low=values[0], high=values[0], count=len(values))
    rng = random.Random(len(values))  # noqa: S311 (statistics, not secrets)
    means = sorted(fmean(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return Estimate(mean=fmean(values), low=low, high=high, count=len(values))


def summarize(
    *,
    namespace: str,
    run: str,
    run_uid: str,
    benchmark: str,
    test_visibility: str,
    network: str,
    trials: Iterable[TrialLine],
) -> RunResults:
    """The report of a run from its trials, in a stable order."""
    lines = tuple(sorted(trials, key=_line_key))
    return RunResults(
        namespace=namespace,
        run=run,
        run_uid=run_uid,
        benchmark=benchmark,
        test_visibility=test_visibility,
        network=network,
        cells=summarize_cells(lines),
        trials=lines,
    )


def summarize_cells(trials: Iterable[TrialLine]) -> tuple[CellSummary, ...]:
    """The cells that these trials belong to, in a stable order."""
    cells: dict[tuple[str, str, str], list[TrialLine]] = defaultdict(list)
    for line in sorted(trials, key=_line_key):
        cells[line.agent, line.model or "", line.loop or ""].append(line)
    return tuple(_cell(cells[key]) for key in sorted(cells))


def _line_key(line: TrialLine) -> tuple[str, str, str, str, int, str]:
    return (line.agent, line.model or "", line.loop or "", line.task, line.attempt, line.trial)


def _cell(lines: list[TrialLine]) -> CellSummary:
    by_task: dict[str, list[TrialLine]] = defaultdict(list)
    for line in lines:
        by_task[line.task].append(line)
    tasks = [by_task[task] for task in sorted(by_task)]
    scored = [line.metrics for line in lines if line.metrics is not None]
    return CellSummary(
        agent=lines[0].agent,
        model=lines[0].model,
        loop=lines[0].loop,
        scheduled=len(lines),
        resolved=sum(_resolved(line) for line in lines),
        resolve_rate=estimate([fmean(map(_resolved, group)) for group in tasks]),
        tpr=_mean(tasks, "tpr"),
        depth=_mean(tasks, "depth"),
        reg_rate=_mean(tasks, "reg_rate"),
        reg_events=sum(m.reg_events for m in scored),
        recoveries=sum(m.recoveries for m in scored),
        pass_at_k=_pass_at_ks(tasks),
        infra_errors=sum(line.failure_mode == FailureMode.INFRA_ERROR for line in lines),
    )


def _resolved(line: TrialLine) -> bool:
    return line.metrics is not None and line.metrics.resolved


def _mean(tasks: list[list[TrialLine]], metric: str) -> Estimate | None:
    """Mean over tasks of the mean over attempts that have the metric."""
    per_task = [
        [_value(line.metrics, metric) for line in group if line.metrics is not None]
        for group in tasks
    ]
    defined = [[v for v in values if v is not None] for values in per_task]
    return estimate([fmean(values) for values in defined if values])


def _value(metrics: Metrics, metric: str) -> float | None:
    value = getattr(metrics, metric)
    return None if value is None else float(value)


def _pass_at_ks(tasks: list[list[TrialLine]]) -> dict[str, float]:
    """pass@k for k = 1 and the powers of two up to the smallest number of attempts."""
    smallest = min(len(group) for group in tasks)
    ks = [k for k in (1, 2, 4, 8, 16, 32) if k <= smallest]
    return {str(k): fmean(pass_at_k(len(g), sum(map(_resolved, g)), k) for g in tasks) for k in ks}
