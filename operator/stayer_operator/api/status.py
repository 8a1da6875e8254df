"""Status of a BenchmarkRun, and what both kinds share."""

from typing import Literal

from pydantic import Field

from stayer_operator.api.base import ApiModel, map_list

Time = str  # RFC 3339, seconds, UTC


class Condition(ApiModel):
    """A condition, as everywhere in Kubernetes."""

    type: str = Field(max_length=316, description="What is judged, for instance Accepted.")
    status: Literal["True", "False", "Unknown"] = Field(description="The judgement.")
    observed_generation: int | None = Field(
        default=None, description="metadata.generation that was judged."
    )
    last_transition_time: Time = Field(
        description="When status last changed.", json_schema_extra={"format": "date-time"}
    )
    reason: str = Field(max_length=1024, description="Why, in one CamelCase word.")
    message: str = Field(default="", max_length=32768, description="Why, for people.")


class TrialCounts(ApiModel):
    """Attempts of a run by phase. A cell that was run again counts once, by its newest Trial."""

    total: int = Field(description="Attempts that the spec asks for.")
    pending: int = Field(description="Not started: no Trial yet, or it waits.")
    admitted: int = Field(description="Pods created, not yet running.")
    running: int = Field(description="The agent works.")
    draining: int = Field(description="The agent ended, snapshots are adjudicated.")
    active: int = Field(
        default=0, description="Hold pods now: admitted, running and draining together."
    )
    succeeded: int = Field(description="Ended with a valid result, whatever its score.")
    failed: int = Field(description="Ended without one (infra_error).")
    cancelled: int = Field(description="Ended by a cancel.")


class RunStatus(ApiModel):
    """What was observed of a run. Conditions are the truth, `phase` is derived from them."""

    observed_generation: int | None = Field(
        default=None, description="metadata.generation that this status is about."
    )
    phase: Literal["Pending", "Running", "Suspended", "Succeeded", "Failed", "Cancelled"] | None = (
        Field(default=None, description="Where the run stands, derived from the conditions.")
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Accepted: the spec is sound. TasksReady: tasks are found and their "
        "inventories taken. NetworkReady: the run's NetworkPolicies exist. Progressing: trials "
        "run; where it is False its message says for what the run waits. Complete: every trial "
        "has ended.",
        json_schema_extra=map_list("type"),
    )
    trials: TrialCounts | None = Field(default=None, description="Attempts by phase.")
    trials_summary: str | None = Field(
        default=None, description="Attempts that have ended / all of them, for instance 3/10."
    )
    resolved_rate: str | None = Field(
        default=None,
        description="Share of the finished attempts that resolved their task, for instance 0.50. "
        "The resolved rate of a whole run counts every scheduled attempt: see the report.",
    )
    regressions: int | None = Field(
        default=None, description="Regression events of all attempts together."
    )
    start_time: Time | None = Field(
        default=None,
        description="When the first trial was created.",
        json_schema_extra={"format": "date-time"},
    )
    completion_time: Time | None = Field(
        default=None,
        description="When the last trial ended.",
        json_schema_extra={"format": "date-time"},
    )
    last_update_time: Time | None = Field(
        default=None,
        description="When this status was written; counts are written every few seconds at most.",
        json_schema_extra={"format": "date-time"},
    )
    report: str | None = Field(
        default=None, description="Key of the run's results in the object store, once complete."
    )
    pinned: dict[str, str] | None = Field(
        default=None,
        max_length=200,
        description="Digests of what must not change, by field; present once trials exist.",
    )
