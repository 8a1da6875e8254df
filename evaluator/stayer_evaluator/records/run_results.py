"""`results.json` of a whole run: its trials and one summary per cell."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import Metrics


class Estimate(Record):
    """A mean over tasks with its bootstrap 95 % interval (evaluation.md §7)."""

    mean: float
    low: float
    high: float
    count: int = Field(description="tasks that entered the mean")


class TrialLine(Record):
    """One trial as a row: what a table needs."""

    trial: str
    task: str
    agent: str
    model: str | None
    loop: str | None
    attempt: int
    phase: str
    valid: bool
    failure_mode: FailureMode
    metrics: Metrics | None
    snapshots_taken: int = 0
    snapshots_adjudicated: int = 0
    canaries_run: int = 0
    infra_restarts: int = 0
    seconds: float | None = None


class CellSummary(Record):
    """One (agent, model, loop) cell over all its scheduled tasks and attempts."""

    agent: str
    model: str | None
    loop: str | None
    scheduled: int = Field(description="trials; failed and missing ones stay in the denominator")
    resolved: int
    resolve_rate: Estimate | None
    tpr: Estimate | None
    depth: Estimate | None
    reg_rate: Estimate | None
    reg_events: int
    recoveries: int
    pass_at_k: dict[str, float] = Field(default_factory=dict, description="k -> pass@k")
    infra_errors: int


class RunResults(Record):
    """The report of a run."""

    schema_version: Literal["stayer.dev/run-results/v1"] = "stayer.dev/run-results/v1"
    namespace: str
    run: str
    run_uid: str
    benchmark: str
    test_visibility: str
    network: str
    cells: tuple[CellSummary, ...]
    trials: tuple[TrialLine, ...]
