"""Which waiting trials may have their pods now, over all runs of the installation.

Creating both pods *is* admission (design.md §3); Kubernetes does the scheduling. Order:

    1. priority of the run, highest first; a lower one only gets what the higher ones cannot use
    2. among runs of equal priority: the run that holds the fewest trials, then the oldest
    3. within a run: what was admitted before and is only about to have its pods, then inventories
       before attempts, then the longest expected, then by name

Bounds: parallelism of the run, its limits per model, no pair of a shape of which one is
Unschedulable, and at most `starting_per_shape` pairs of one shape that have no nodes yet, so that
what frees up is given out in this order and not in that of a long queue of pending pods.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import Reason
from stayer_operator.api.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRun:
    """A run that has trials. `admissible` is False while its spec cannot be read."""

    key: str
    created: float
    priority: int = 0
    parallelism: int = 1
    model_limits: Mapping[str, int] = field(default_factory=dict)
    suspended: bool = False
    cancelled: bool = False
    admissible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionTrial:
    """A trial that waits for its pods, or `holds` them (Admitted, Running, Draining).

    `starting`: it holds pods, but not both have a node. `unschedulable`: of these one has the
    condition PodScheduled=False, reason Unschedulable. `shape`: equal for pairs with equal
    requests and placement. `not_before`: seconds since the epoch, end of its back-off.
    """

    key: str
    run: str
    kind: TrialKind = TrialKind.ATTEMPT
    model: str = ""
    shape: str = ""
    expected_seconds: float = 0
    holds: bool = False
    starting: bool = False
    unschedulable: bool = False
    inventory_ready: bool = True
    not_before: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionView:
    """Everything that admission looks at. A trial whose run is not in `runs` is never admitted.

    `before`: who was admitted by the last answer. The POST of its pods may be on its way, so its
    place must not go to somebody else now.
    """

    runs: tuple[AdmissionRun, ...]
    trials: tuple[AdmissionTrial, ...]
    now: float
    starting_per_shape: int = 32
    before: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a trial is not admitted."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer. `waits` has an entry for every waiting trial that is not admitted; `wake_after`
    is the time in seconds until the first back-off ends (None without one).
    """

    admitted: frozenset[str]
    waits: Mapping[str, Wait]
    wake_after: float | None


def admit(view: AdmissionView) -> Admission:
    """Decide on every waiting trial. Deterministic: equal views give equal answers."""
    usage = _Usage.of(view)
    runs = {run.key: run for run in view.runs}
    queues = _queues(view, runs)
    admitted: set[str] = set()
    waits: dict[str, Wait] = {}
    for priority in sorted({run.priority for run in view.runs}, reverse=True):
        tier = [run for run in view.runs if run.priority == priority and queues.get(run.key)]
        _admit_tier(view, tier, queues, usage, admitted, waits)
    for trial in view.trials:
        if trial.run not in runs and not trial.holds:
            waits[trial.key] = Wait(reason=Reason.RUN_NOT_ACCEPTED, message="its run is unknown")
    return Admission(admitted=frozenset(admitted), waits=waits, wake_after=_wake(view))


def _admit_tier(  # the state of one pass
    view: AdmissionView,
    tier: list[AdmissionRun],
    queues: dict[str, Iterator[AdmissionTrial]],
    usage: "_Usage",
    admitted: set[str],
    waits: dict[str, Wait],
) -> None:
    """Give each run of the tier its turn, the one that holds least first, until none wants more."""
    turns = [(usage.by_run[run.key], run.created, run.key, run) for run in tier]
    heapq.heapify(turns)
    while turns:
        _, created, key, run = heapq.heappop(turns)
        for trial in queues[key]:
            wait = _obstacle(view, run, trial, usage)
            if wait is not None:
                waits[trial.key] = wait
                continue
            admitted.add(trial.key)
            usage.take(trial)
            heapq.heappush(turns, (usage.by_run[key], created, key, run))
            break


def _queues(
    view: AdmissionView, runs: Mapping[str, AdmissionRun]
) -> dict[str, Iterator[AdmissionTrial]]:
    """The waiting trials of each run in the order in which they are offered a place."""
    waiting: dict[str, list[AdmissionTrial]] = {}
    for trial in view.trials:
        if not trial.holds and trial.run in runs:
            waiting.setdefault(trial.run, []).append(trial)

    def order(trial: AdmissionTrial) -> tuple[bool, bool, float, str]:
        later = trial.kind is not TrialKind.INVENTORY
        return trial.key not in view.before, later, -trial.expected_seconds, trial.key

    return {key: iter(sorted(trials, key=order)) for key, trials in waiting.items()}


@dataclass(slots=True)
class _Usage:
    """What is held, counted; grows while a pass admits."""

    by_run: Counter[str]
    by_model: Counter[tuple[str, str]]
    starting: Counter[str]
    blocked: frozenset[str]

    @classmethod
    def of(cls, view: AdmissionView) -> "_Usage":
        holding = [trial for trial in view.trials if trial.holds]
        return cls(
            by_run=Counter(trial.run for trial in holding),
            by_model=Counter((trial.run, trial.model) for trial in holding if trial.model),
            starting=Counter(trial.shape for trial in holding if trial.starting),
            blocked=frozenset(trial.shape for trial in holding if trial.unschedulable),
        )

    def take(self, trial: AdmissionTrial) -> None:
        self.by_run[trial.run] += 1
        self.starting[trial.shape] += 1
        if trial.model:
            self.by_model[trial.run, trial.model] += 1


def _obstacle(
    view: AdmissionView, run: AdmissionRun, trial: AdmissionTrial, usage: _Usage
) -> Wait | None:
    """The first thing that keeps a trial waiting, the most lasting one first."""
    return _run_obstacle(run) or _own_obstacle(view, trial) or _limit(view, run, trial, usage)


def _run_obstacle(run: AdmissionRun) -> Wait | None:
    if run.cancelled:
        return Wait(reason=Reason.CANCELLED, message="the run is cancelled")
    if not run.admissible:
        return Wait(reason=Reason.RUN_NOT_ACCEPTED, message="the run's spec is not accepted")
    if run.suspended:
        return Wait(reason=Reason.RUN_SUSPENDED, message="spec.suspend is true")
    return None


def _own_obstacle(view: AdmissionView, trial: AdmissionTrial) -> Wait | None:
    if not trial.inventory_ready:
        return Wait(reason=Reason.INVENTORY_PENDING, message="its task has no inventory yet")
    if trial.not_before > view.now:
        return Wait(
            reason=Reason.BACKING_OFF,
            message="its pods were released; they are created again after a back-off",
        )
    return None


def _limit(
    view: AdmissionView, run: AdmissionRun, trial: AdmissionTrial, usage: _Usage
) -> Wait | None:
    limit = run.model_limits.get(trial.model) if trial.model else None
    if usage.by_run[run.key] >= run.parallelism:
        return _run_is_full(run.parallelism)
    if limit is not None and usage.by_model[run.key, trial.model] >= limit:
        return Wait(
            reason=Reason.MODEL_PARALLELISM,
            message=f"spec.modelLimits: {trial.model} has {counted(limit, 'trial')} with pods",
        )
    if trial.shape in usage.blocked:
        return Wait(
            reason=Reason.SHAPE_UNSCHEDULABLE,
            message="a pair with the same requests and placement fits on no node now",
        )
    if usage.starting[trial.shape] >= view.starting_per_shape:
        return Wait(
            reason=Reason.PODS_STARTING,
            message=f"{counted(view.starting_per_shape, 'pair')} of its shape without nodes yet",
        )
    return None


@lru_cache(maxsize=64)  # what most trials of a large run wait for
def _run_is_full(parallelism: int) -> Wait:
    return Wait(
        reason=Reason.RUN_PARALLELISM,
        message=f"spec.parallelism: the run has {counted(parallelism, 'trial')} with pods",
    )


def _wake(view: AdmissionView) -> float | None:
    ends = [t.not_before for t in view.trials if not t.holds and t.not_before > view.now]
    return min(ends) - view.now if ends else None
