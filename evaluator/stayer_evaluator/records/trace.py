"""Trace events (evaluation.md §8): JSON lines, one segment series per writer."""

from typing import Any, Literal

from pydantic import Field

from stayer_evaluator.records.base import Record

EventType = Literal[
    "trial_started", "round_started", "round_ended", "model_usage", "rate_limited",
    "snapshot_taken", "snapshot_coalesced", "checkpoint", "unit_released", "unit_cleared",
    "regression", "recovery", "implemented", "plan_seen", "tamper_suspected", "infra_restart",
    "trial_finished",
]  # fmt: skip


class TraceEvent(Record):
    """One event. Order of the merged stream: (snapshot, writer, sequence)."""

    v: Literal[1] = 1
    type: EventType
    writer: str = Field(description="recorder-<incarnation>-<nonce> or adjudicator-<...>")
    sequence: int = Field(ge=0, description="monotone per writer, dense from 0")
    time: float
    snapshot: int | None = None
    data: dict[str, Any] = Field(default_factory=dict)
