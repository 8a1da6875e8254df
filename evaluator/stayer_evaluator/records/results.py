"""`results.json`: the score of one trial; created once, the truth of its end."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import FailureMode, TrialKind, UnitState
from stayer_evaluator.records.queue import RoundRecord


class Metrics(Record):
    """Metrics of evaluation.md §6; null = not defined for this trial."""

    resolved: bool
    tpr: float | None
    tpr_ungated: float | None
    depth: float
    reg_events: int
    recoveries: int
    reg_rate: float | None
    reg_final: float | None
    rounds: int
    sigma: tuple[str, ...] = Field(description="units by first implementation")
    completion_order: tuple[str, ...] = Field(description="units by clearing time")
    order_violations: int
    order_diff: int
    kendall_tau: float | None
    units_cleared: int
    units_total: int
    cases_passed: int
    cases_total: int
    tokens_input: int | None = None
    tokens_output: int | None = None
    model_calls: int | None = None


class TrialResults(Record):
    """The result document of a trial."""

    schema_version: Literal["stayer.dev/results/v1"] = "stayer.dev/results/v1"
    kind: TrialKind
    namespace: str
    run: str
    trial: str
    task: str
    task_digest: str
    agent: str | None
    model: str | None
    loop: str | None
    attempt: int
    valid: bool = Field(description="false: infra_error, no score")
    failure_mode: FailureMode
    message: str = ""
    metrics: Metrics | None
    final_states: dict[str, UnitState] = Field(default_factory=dict)
    rounds: tuple[RoundRecord, ...] = ()
    snapshots_taken: int = 0
    snapshots_adjudicated: int = 0
    snapshots_coalesced: int = 0
    infra_restarts: int = 0
    canaries_run: int = 0
    canaries_failed: int = 0
    tamper: tuple[str, ...] = ()
    test_visibility: str = "attached"
    network: str = "closed"
    user_namespace: str = ""
    started: float | None = None
    ended: float | None = None
    bytes_stored: int = 0
