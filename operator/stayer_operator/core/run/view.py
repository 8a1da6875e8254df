"""What is known of one BenchmarkRun at one moment. Filled by gather, read by the planner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.results import Metrics, TrialResults
from stayer_operator.api.conditions import Reason, TrialPhase
from stayer_operator.core.run.cells import Coordinates, coordinates
from stayer_operator.core.run.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSummary:
    """A Trial of the run, reduced to what the run needs (from the informer's projection)."""

    name: str
    uid: str
    kind: TrialKind
    task: str
    task_digest: str
    agent: str = ""
    model: str = ""
    loop: str = ""
    attempt: int = 1
    generation: int = 0  # of the run's spec.rerun
    restarts: int = 0  # within the generation
    begins_again: bool = False  # its agent was lost, and a new Trial is to take its place
    phase: TrialPhase = TrialPhase.PENDING
    deleting: bool = False
    resolved: bool | None = None
    failure_mode: str = ""
    message: str = ""
    regressions: int = 0
    waits_for: str = ""  # reason from the latest admission, or of its own condition
    waits_message: str = ""  # both only where `needs.wants_waits` says so
    results: str = ""  # key of its results.json
    cell: Coordinates = field(init=False, repr=False, compare=False)  # kept: asked in every plan

    def __post_init__(self) -> None:
        cell = coordinates(self.task, self.agent, self.model, self.loop)
        object.__setattr__(self, "cell", cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTasks:
    """The run's own task list as stored under `layout.run_tasks`; read before any source."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTasks:
    """The source's records: task name (file name without .json) -> bytes of its TaskRecord."""

    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksTrouble:
    """Neither could be read. reason: TaskSetNotFound (nothing there; wait) or StoreUnavailable."""

    reason: Reason
    message: str


TasksView = PinnedTasks | FoundTasks | TasksTrouble


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryView:
    """A task digest's inventory.json, as far as it exists."""

    accepted: bool
    problems: tuple[str, ...] = ()


class TrialScore(NamedTuple):
    """What a run's report says of a trial's results. `seconds`: from its start to its end.

    Without what grows with units and rounds, and small: those of all trials are held at once.
    """

    valid: bool
    failure_mode: FailureMode
    metrics: Metrics | None
    snapshots_taken: int
    snapshots_adjudicated: int
    canaries_run: int
    infra_restarts: int
    seconds: float | None

    @classmethod
    def of(cls, results: TrialResults) -> "TrialScore":
        """What is kept of a result document."""
        timed = results.started is not None and results.ended is not None
        return cls(
            valid=results.valid,
            failure_mode=results.failure_mode,
            metrics=results.metrics,
            snapshots_taken=results.snapshots_taken,
            snapshots_adjudicated=results.snapshots_adjudicated,
            canaries_run=results.canaries_run,
            infra_restarts=results.infra_restarts,
            seconds=(results.ended or 0) - (results.started or 0) if timed else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Input of `plan_run`.

    `manifest` is the raw object (metadata, spec, status): it may be anything that the API server
    let pass. `scripts` holds the texts of the ConfigMap keys that `needs.run_needs` names (None
    where there is none). `inventories` holds what exists, by task digest; a digest without an entry
    has no inventory yet. `results` (by trial name) are read only where `needs.wants_results` says
    so, None otherwise. `now` is in seconds since the epoch.
    """

    manifest: Mapping[str, Any]
    tasks: TasksView
    scripts: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    inventories: Mapping[str, InventoryView] = field(default_factory=dict)
    trials: tuple[TrialSummary, ...] = ()
    results: Mapping[str, TrialScore] | None = None
    settings: RunSettings
    now: float
