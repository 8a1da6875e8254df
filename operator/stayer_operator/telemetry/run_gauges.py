"""Gauges computed when they are scraped, from what the operator sees: right after a restart too.

Per-run series carry namespace and run and go when the run goes. Scrapes are many and changes few:
what was counted at the last scrape is kept, and only Trials that are not the same objects as then
are counted anew. Where more changed than the state of known Trials, everything is.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
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

_RunKey = tuple[str, str]
_Cell = tuple[str, ...]


@dataclass(slots=True)
class _RunTally:
    """A run's attempts, counted by their statuses."""

    phases: Tally[str] = field(default_factory=Tally)
    sums: Tally[str] = field(default_factory=Tally)
    ended: int = 0
    resolved: int = 0
    queued: int = 0  # snapshots that wait for a verdict

    def count(self, trial: TrialObject, times: int = 1) -> None:
        """Add a trial; -1 times takes away what the same object added."""
        phase, numbers = _phase(trial), _stored(trial)
        self.phases[phase] += times
        for name, number in numbers.items():
            if number:  # few numbers of a trial that has not ended
                self.sums[name] += times * number
        if phase in _TERMINAL:
            self.ended += times
            self.resolved += times * (trial.status.get("resolved") is True)
        else:
            self.queued += times * _queued(numbers)

    def hear(self, trial: TrialObject, progress: Progress) -> None:
        """Add by how much a trial's reports are ahead of its status; all numbers are cumulative."""
        stored = _stored(trial)
        newest = {
            name: max(stored[name], getattr(progress, reported) or 0)
            for _, _, name, reported in _SUMS
        }
        for name, number in newest.items():
            self.sums[name] += number - stored[name]
        self.queued += _queued(newest) - _queued(stored)


_NOTHING = _RunTally()  # Counters answer 0 for what they lack, and keep nothing of it


@dataclass(slots=True)
class _Count:
    """What was counted of the Trials of one walk, and of which."""

    trials: list[TrialObject] = field(default_factory=list)  # in the order of the walk
    attempts: dict[_Cell, TrialObject] = field(default_factory=dict)  # the newest ones
    phases: Tally[str] = field(default_factory=Tally)  # of all Trials
    runs: dict[_RunKey, _RunTally] = field(default_factory=dict)

    @classmethod
    def of(cls, trials: Iterable[TrialObject]) -> _Count:
        """Count everything. Inventory trials count by phase only."""
        count = cls()
        for trial in trials:
            count._see(trial)
            if trial.kind is TrialKind.ATTEMPT:
                cell = _cell(trial)
                rival = count.attempts.get(cell)
                if rival is None or _age(trial) > _age(rival):
                    count.attempts[cell] = trial
        for trial in count.attempts.values():
            count._run(trial).count(trial)
        return count

    def follow(self, trials: list[TrialObject]) -> bool:
        """Bring the count to these Trials. False where that is not a matter of Trials that were
        replaced by what they are now and of new attempts: it is of no use any more then.
        """
        known = self.trials
        if len(trials) < len(known):
            return False
        for index, (old, new) in enumerate(zip(known, trials, strict=False)):
            if old is not new:
                if not _is_same_attempt(old, new):
                    return False
                known[index] = new
                self._replace(old, new)
        return all(self._add(new) for new in trials[len(known) :])

    def _replace(self, old: TrialObject, new: TrialObject) -> None:
        self.phases[_phase(old)] -= 1
        self.phases[_phase(new)] += 1
        if old.kind is TrialKind.ATTEMPT and self.attempts[cell := _cell(old)] is old:
            self.attempts[cell] = new
            run = self._run(old)
            run.count(old, -1)
            run.count(new)

    def _add(self, trial: TrialObject) -> bool:
        """Whether it could be added: not where it has a rival."""
        self._see(trial)
        if trial.kind is TrialKind.ATTEMPT:
            if self.attempts.setdefault(_cell(trial), trial) is not trial:
                return False
            self._run(trial).count(trial)
        return True

    def _see(self, trial: TrialObject) -> None:
        self.trials.append(trial)
        self.phases[_phase(trial)] += 1

    def _run(self, trial: TrialObject) -> _RunTally:
        return self.runs.setdefault((trial.namespace, trial.run), _RunTally())


class RunGauges(Collector):
    """`stayer_trials`, `stayer_snapshots_queued` and the per-run gauges."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._last = _Count()

    def describe(self) -> Iterable[Any]:
        """Nothing ahead: registering must not look at the cluster."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What holds now. Inventory trials count by phase only."""
        count = self._count()
        ahead = self._ahead(count)
        seen = ((run.namespace, run.name) for run in self._observed.runs())
        runs = {key: count.runs.get(key, _NOTHING) for key in (*seen, *count.runs)}
        queued = sum(tally.queued for tally in (*runs.values(), *ahead.values()))
        yield _by_phase("stayer_trials", "Trials by phase", (), {(): count.phases})
        yield GaugeMetricFamily(
            "stayer_snapshots_queued", "Durable snapshots without a verdict", value=queued
        )
        phases = {key: tally.phases for key, tally in runs.items()}
        yield _by_phase("stayer_run_trials", "A run's attempts by phase", RUN, phases)
        yield _resolved(runs)
        for metric, words, name, _ in _SUMS:
            family = GaugeMetricFamily(metric, words, labels=RUN)
            for key, tally in runs.items():
                family.add_metric(key, tally.sums[name] + ahead.get(key, _NOTHING).sums[name])
            yield family

    def _count(self) -> _Count:
        trials = list(self._observed.trials())
        count, self._last = self._last, _Count()  # where counting fails, none of it is kept
        self._last = count if count.follow(trials) else _Count.of(trials)
        return self._last

    def _ahead(self, count: _Count) -> dict[_RunKey, _RunTally]:
        """What reports add to the statuses. An ended trial's status is final."""
        ahead: dict[_RunKey, _RunTally] = {}
        for trial in count.trials:
            if trial.status.get("phase") in _TERMINAL or trial.kind is not TrialKind.ATTEMPT:
                continue
            progress = self._observed.progress(trial.key)
            if progress is not None and count.attempts[_cell(trial)] is trial:
                ahead.setdefault((trial.namespace, trial.run), _RunTally()).hear(trial, progress)
        return ahead


def _phase(trial: TrialObject) -> str:
    return str(trial.status.get("phase") or TrialPhase.PENDING.value)


def _age(trial: TrialObject) -> tuple[int, int, str]:
    """Of the Trials of an attempt the largest counts, as in the run's own census."""
    spec = trial.spec
    return int(spec.get("generation") or 0), int(spec.get("restarts") or 0), trial.name


def _cell(trial: TrialObject) -> _Cell:
    """What a rerun shares with the attempt that it replaces."""
    spec = trial.spec
    task = spec.get("task") or {}
    parts = (task.get("name"), task.get("digest"), spec.get("agent"), spec.get("model"))
    more = (spec.get("loopProfile"), intern(str(spec.get("attempt"))))
    return (trial.namespace, trial.run_uid, *map(str, parts), *map(str, more))


def _is_same_attempt(one: TrialObject, other: TrialObject) -> bool:
    """Only its status may be another: it counts in the same places, against the same rivals."""
    return _owner(one) == _owner(other) and one.spec == other.spec


def _owner(trial: TrialObject) -> tuple[object, ...]:
    return trial.uid, trial.kind, trial.namespace, trial.run, trial.run_uid


def _stored(trial: TrialObject) -> dict[str, int]:
    """The numbers of its status, by field."""
    return {name: int(trial.status.get(name) or 0) for _, _, name, _ in _SUMS}


def _queued(numbers: Mapping[str, int]) -> int:
    """Snapshots that wait for a verdict."""
    return max(0, numbers["snapshotsTaken"] - numbers["snapshotsAdjudicated"])


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


def _resolved(runs: Mapping[_RunKey, _RunTally]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "stayer_run_resolved_ratio", "Resolved share of the ended attempts", labels=RUN
    )
    for key, tally in runs.items():
        if tally.ended:
            family.add_metric(key, tally.resolved / tally.ended)
    return family
