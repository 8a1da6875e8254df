"""Trial: one attempt of one cell, or one inventory of a task. Made by the operator only."""

from typing import Literal

from pydantic import ConfigDict, Field

from stayer_operator.api.base import ApiModel, cel, map_list, rules
from stayer_operator.api.pods import Images, PodTemplates
from stayer_operator.api.status import Condition, Time


class TrialTask(ApiModel):
    """The task of a trial."""

    name: str = Field(max_length=128, description="Name of the task.")
    digest: str = Field(
        max_length=64, description="sha256 over task directory and image digest, in hex."
    )
    image: str = Field(max_length=1024, description="Image of the task container, with digest.")


class TrialDocumentReference(ApiModel):
    """The resolved document of a trial."""

    key: str = Field(max_length=1024, description="Key of trial.json in the object store.")
    sha256: str = Field(max_length=64, description="sha256 of its bytes, in hex.")


class TrialTimeouts(ApiModel):
    """Resolved time limits."""

    agent_seconds: int = Field(description="Agent time, all rounds together.")
    test_seconds: int = Field(description="Limit for testing one unit once.")
    drain_seconds: int = Field(description="Limit for adjudicating after the agent ended.")


class TrialSpec(ApiModel):
    """Spec of a Trial. Everything that gives its result a meaning stands in the document."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel("self == oldSelf", "the spec of a Trial is immutable; accepted: no change")
        )
    )

    kind: Literal["attempt", "inventory"] = Field(
        description="attempt: an agent works on the task. inventory: the task's gold solution is "
        "tested once, which yields the expected test cases."
    )
    run_name: str = Field(max_length=63, description="Name of the BenchmarkRun.")
    run_uid: str = Field(alias="runUID", max_length=64, description="UID of the BenchmarkRun.")
    task: TrialTask = Field(description="The task.")
    agent: str | None = Field(default=None, max_length=128, description="Agent of the matrix.")
    harness: str | None = Field(default=None, max_length=128, description="Its harness.")
    model: str | None = Field(default=None, max_length=128, description="Model of the matrix.")
    loop_profile: str | None = Field(
        default=None, max_length=128, description="Loop profile of the matrix."
    )
    attempt: int = Field(default=1, ge=1, description="Number of the attempt within its cell.")
    generation: int = Field(
        default=0, ge=0, description="spec.rerun.generation of the run for which it was made."
    )
    restarts: int = Field(
        default=0,
        ge=0,
        description="How often the attempt was begun again before this Trial because its agent "
        "pod was lost (onAgentLoss: restart).",
    )
    document: TrialDocumentReference = Field(description="The resolved document.")
    prefix: str = Field(
        max_length=1024, description="Key prefix of the trial's evidence in the object store."
    )
    priority: int = Field(default=0, description="Priority of the run when it was made.")
    expected_seconds: int = Field(
        default=0, ge=0, description="Expected duration; the longest starts first."
    )
    timeouts: TrialTimeouts = Field(description="Resolved time limits.")
    on_agent_loss: Literal["resume", "restart", "fail"] = Field(
        default="resume", description="As in the run."
    )
    infra_retries: int = Field(default=5, ge=0, description="As in the run.")
    network: Literal["closed", "open"] = Field(default="closed", description="As in the run.")
    user_namespaces: Literal["required", "preferred", "off"] = Field(
        default="required", description="As in the run."
    )
    test_visibility: Literal["attached", "hidden"] = Field(
        default="attached", description="As in the run."
    )
    grants: tuple[Literal["gold", "suite"], ...] = Field(
        default=(),
        max_length=2,
        description="What the agent pod's sidecar may read besides the public part of the task.",
    )
    images: Images = Field(default_factory=Images, description="As in the run.")
    pod_templates: PodTemplates = Field(
        default_factory=PodTemplates, description="As in the run when the Trial was made."
    )


class TrialStatus(ApiModel):
    """What was observed of a trial. Conditions are the truth, `phase` is derived from them."""

    observed_generation: int | None = Field(
        default=None, description="metadata.generation that this status is about."
    )
    phase: (
        Literal["Pending", "Admitted", "Running", "Draining", "Succeeded", "Failed", "Cancelled"]
        | None
    ) = Field(
        default=None,
        description="Pending, Admitted, Running, Draining (the agent ended, snapshots are "
        "adjudicated), then Succeeded (a valid result, whatever its score), Failed (infra_error) "
        "or Cancelled.",
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Admitted: its pods were created. Scheduled: both have a node. Running: both "
        "sidecars have started. AgentEnded: the agent's work is closed. Complete: the outcome is "
        "recorded.",
        json_schema_extra=map_list("type"),
    )
    agent_incarnation: int | None = Field(
        default=None, description="Life of the agent pod, counted from 1."
    )
    adjudicator_incarnation: int | None = Field(
        default=None, description="Life of the adjudicator pod, counted from 1."
    )
    infra_restarts: int | None = Field(
        default=None, description="Pods replaced for infrastructure reasons."
    )
    released_attempts: int | None = Field(
        default=None, description="Pairs that were released because they did not start together."
    )
    not_before: Time | None = Field(
        default=None,
        description="End of the back-off after a release.",
        json_schema_extra={"format": "date-time"},
    )
    round: int | None = Field(default=None, description="Round of the outer loop.")
    snapshots_taken: int | None = Field(default=None, description="Snapshots in the queue.")
    snapshots_adjudicated: int | None = Field(default=None, description="Snapshots with verdict.")
    units_cleared: int | None = Field(default=None, description="Units cleared so far.")
    units_total: int | None = Field(default=None, description="Units with tests.")
    units_summary: str | None = Field(
        default=None, description="Units cleared / units with tests, for instance 3/8."
    )
    regressions: int | None = Field(default=None, description="Regression events so far.")
    recoveries: int | None = Field(default=None, description="Recovery events so far.")
    resolved: bool | None = Field(
        default=None, description="Every tested unit cleared and passing at the end."
    )
    failure_mode: str | None = Field(
        default=None, description="How the agent's work ended; none = as it should."
    )
    message: str | None = Field(
        default=None, max_length=1024, description="What happened last, for people."
    )
    agent_pod: str | None = Field(default=None, description="Name of the newest agent pod.")
    adjudicator_pod: str | None = Field(
        default=None, description="Name of the newest adjudicator pod."
    )
    results: str | None = Field(
        default=None, description="Key of results.json in the object store, once it exists."
    )
    start_time: Time | None = Field(
        default=None,
        description="When both pods first ran.",
        json_schema_extra={"format": "date-time"},
    )
    completion_time: Time | None = Field(
        default=None,
        description="When the trial ended.",
        json_schema_extra={"format": "date-time"},
    )
    tokens_input: int | None = Field(
        default=None, description="Input tokens; empty where no gateway counted them."
    )
    tokens_output: int | None = Field(
        default=None, description="Output tokens; empty where no gateway counted them."
    )
