"""Gauges computed when they are scraped, from what the operator sees: right after a restart too.

Per-run series carry namespace and run and go when the run goes.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import TERMINAL_TRIAL_PHASES, TrialPhase
from stayer_operator.core.observed import Progress, TrialObject
from stayer_operator.ports import Observed

RUN = ("namespace", "run")
_TERMINAL = frozenset(phase.value for phase in TERMINAL_TRIAL_PHASES)

# metric, its words, field of a Trial's status, field of Progress
_SUMS = (
    ("stayer_run_units_cleared", "Units cleared in the run", "unitsCleared", "units_cleared"),
    ("stayer_run_units", "Units of the run's trials", "unitsTotal", "units_total"),
    ("stayer_run_regressions", "Regressions in the run", "regressions", "regressions"),
    ("stayer_run_recoveries", "Recoveries in the run", "recoveries", "recoveries"),
    ("stayer_run_snapshots_taken", "Durable snapshots", "snapshotsTaken", "snapshots_taken"),
    (
        "stayer_run_snapshots_adjudicated",
        "Snapshots with a verdict",
        "snapshotsAdjudicated",
        "snapshots_adjudicated",
    ),
)


@dataclass(slots=True)
class _RunTally:
    phases: Tally[str] = field(default_factory=Tally)
    sums: Tally[str] = field(default_factory=Tally)
    ended: int = 0
    resolved: int = 0


class RunGauges(Collector):
    """`stayer_trials`, `stayer_snapshots_queued` and the per-run gauges."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed

    def describe(self) -> Iterable[Any]:
        """Nothing ahead: registering must not look at the cluster."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One pass over all Trials. Inventory trials count by phase only."""
        everywhere: Tally[str] = Tally()
        runs: dict[tuple[str, str], _RunTally] = {
            (run.namespace, run.name): _RunTally() for run in self._observed.runs()
        }
        attempts: dict[tuple[str, ...], TrialObject] = {}
        for trial in self._observed.trials():
            everywhere[_phase(trial)] += 1
            if trial.kind is TrialKind.ATTEMPT:
                cell = _cell(trial)
                rival = attempts.get(cell)
                if rival is None or _generation(trial) > _generation(rival):
                    attempts[cell] = trial
        queued = 0
        for trial in attempts.values():
            tally = runs.setdefault((trial.namespace, trial.run), _RunTally())
            queued += _count(tally, trial, self._observed.progress(trial.key))
        yield _by_phase("stayer_trials", "Trials by phase", (), {(): everywhere})
        yield GaugeMetricFamily(
            "stayer_snapshots_queued", "Durable snapshots without a verdict", value=queued
        )
        phases = {key: tally.phases for key, tally in runs.items()}
        yield _by_phase("stayer_run_trials", "A run's attempts by phase", RUN, phases)
        yield _resolved(runs)
        for metric, words, status_field, _ in _SUMS:
            family = GaugeMetricFamily(metric, words, labels=RUN)
            for key, tally in runs.items():
                family.add_metric(key, tally.sums[status_field])
            yield family


def _phase(trial: TrialObject) -> str:
    return str(trial.status.get("phase") or TrialPhase.PENDING.value)


def _generation(trial: TrialObject) -> int:
    return int(trial.spec.get("generation") or 0)


def _cell(trial: TrialObject) -> tuple[str, ...]:
    """What a rerun shares with the attempt that it replaces."""
    spec = trial.spec
    task = spec.get("task") or {}
    parts = (task.get("name"), task.get("digest"), spec.get("agent"), spec.get("model"))
    more = (spec.get("loopProfile"), spec.get("attempt"))
    return (trial.namespace, trial.run_uid, *map(str, parts), *map(str, more))


def _count(tally: _RunTally, trial: TrialObject, progress: Progress | None) -> int:
    """Add a trial to its run; return its snapshots that wait for a verdict."""
    phase = _phase(trial)
    tally.phases[phase] += 1
    numbers = {
        status_field: _newest(trial, status_field, progress, progress_field)
        for _, _, status_field, progress_field in _SUMS
    }
    tally.sums.update(numbers)
    if phase in _TERMINAL:
        tally.ended += 1
        tally.resolved += trial.status.get("resolved") is True
        return 0
    return max(0, numbers["snapshotsTaken"] - numbers["snapshotsAdjudicated"])


def _newest(
    trial: TrialObject, status_field: str, progress: Progress | None, progress_field: str
) -> int:
    """The larger of status and report: all are cumulative. An ended trial's status is final."""
    stored = int(trial.status.get(status_field) or 0)
    if trial.status.get("phase") in _TERMINAL or progress is None:
        return stored
    return max(stored, getattr(progress, progress_field) or 0)


def _by_phase(
    metric: str,
    words: str,
    labels: tuple[str, ...],
    groups: Mapping[Any, Tally[str]],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric, words, labels=[*labels, "phase"])
    for key, tally in groups.items():
        for phase in TrialPhase:
            family.add_metric([*key, phase.value], tally[phase.value])
    return family


def _resolved(runs: dict[tuple[str, str], _RunTally]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "stayer_run_resolved_ratio", "Resolved share of the ended attempts", labels=RUN
    )
    for key, tally in runs.items():
        if tally.ended:
            family.add_metric(key, tally.resolved / tally.ended)
    return family
