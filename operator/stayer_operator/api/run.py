"""BenchmarkRun: what a person applies."""

from typing import Literal

from pydantic import ConfigDict, Field

from stayer_operator.api.base import (
    SET_LIST,
    ApiModel,
    Glob,
    ModelName,
    ObjectName,
    cel,
    map_list,
    rules,
)
from stayer_operator.api.matrix import Matrix
from stayer_operator.api.pods import Images, PodTemplates


class S3Source(ApiModel):
    """A task set in the object store."""

    prefix: str = Field(
        min_length=1,
        max_length=512,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
        description="Key prefix that `stayer tasks push` filled, for instance tasksets/demo.",
    )


class ConfigMapSource(ApiModel):
    """A small task set in a ConfigMap."""

    name: ObjectName = Field(
        description="Name of a ConfigMap in the run's namespace; its keys are <task>.json with "
        "the record that `stayer tasks push` prints."
    )


class TaskSource(ApiModel):
    """Where the tasks come from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.s3) != has(self.configMap)",
                "spec.tasks.source, accepted: exactly one of s3 and configMap",
                found=("%s", "has(self.s3) ? 'both' : 'neither'"),
            )
        )
    )

    s3: S3Source | None = Field(default=None, description="A task set in the object store.")
    config_map: ConfigMapSource | None = Field(
        default=None, description="A task set in a ConfigMap, for a few small tasks."
    )


class Tasks(ApiModel):
    """Which tasks are worked on."""

    source: TaskSource = Field(description="Where the tasks come from: s3 or configMap.")
    include: tuple[Glob, ...] = Field(
        default=("*",),
        min_length=1,
        max_length=64,
        description="Globs over task names; a task is taken when one matches. Every glob must "
        "match something.",
    )
    exclude: tuple[Glob, ...] = Field(
        default=(),
        max_length=64,
        description="Globs over task names; a task that one matches is left out.",
    )


class TaskAttempts(ApiModel):
    """More attempts for some tasks."""

    task: Glob = Field(description="Glob over task names.")
    attempts: int = Field(ge=1, le=1000, description="Attempts of every cell of these tasks.")


class ModelLimit(ApiModel):
    """A bound on one model."""

    model: ModelName = Field(description="Name of a model of the matrix.")
    parallelism: int = Field(
        ge=1, le=10000, description="Trials with this model that may hold pods at once."
    )


class TimeoutsSpec(ApiModel):
    """Time limits. A limit given here counts as it stands; one that comes from the task is
    multiplied.
    """

    preset: Literal["default", "paper"] = Field(
        default="default",
        description="default: each task's own agent limit. paper: the same, but at least 2 h and "
        "at most 24 h, as in the published set-up.",
    )
    agent_seconds: int | None = Field(
        default=None, ge=1, le=604800, description="Agent time of every task, all rounds together."
    )
    test_seconds: int | None = Field(
        default=None, ge=1, le=604800, description="Limit for testing one unit once."
    )
    drain_seconds: int = Field(
        default=7200,
        ge=1,
        le=604800,
        description="How long snapshots are adjudicated after the agent ended; past it only the "
        "newest is.",
    )
    multiplier_percent: int = Field(
        default=100,
        ge=1,
        le=10000,
        description="Multiplies the tasks' own agent and test limits, for slow nodes.",
    )


class Snapshots(ApiModel):
    """How workspaces are sampled, and which samples are adjudicated."""

    interval_seconds: int = Field(
        default=15, ge=1, le=86400, description="Time between two looks at the workspace."
    )
    between_steps_only: bool = Field(
        default=False,
        description="No timed samples: one after each scripted step, so that results repeat "
        "exactly.",
    )
    every_snapshot: bool = Field(
        default=False, description="Adjudicate every snapshot instead of the larger changes."
    )
    min_diff_lines: int = Field(
        default=5,
        ge=0,
        le=1000000,
        description="Least change, in added and removed lines, that makes a snapshot worth "
        "adjudicating.",
    )
    coalesce: bool = Field(
        default=False,
        description="Skip to the newest snapshot when adjudication falls behind; scores then "
        "depend on node speed, and results carry the count.",
    )
    public_excludes: bool = Field(
        default=False,
        description="Leave out dependency folders (node_modules, .venv) as the public harness "
        "does.",
    )
    excludes: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Further path globs, relative to the workspace, to leave out of snapshots.",
    )


class Retention(ApiModel):
    """When the objects go. Evidence in the object store stays until it is pruned."""

    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=31536000,
        description="Delete the run with its Trials this long after it ended; left out: never.",
    )


RerunOutcome = Literal["infra_error", "failed", "cancelled", "unresolved"]


class Rerun(ApiModel):
    """Run finished cells again."""

    generation: int = Field(
        default=0,
        ge=0,
        le=1000000,
        description="Raise it to run cells again: each cell whose newest trial ended with one of "
        "`which` gets one new Trial per generation. The old Trials stay, results count the newest.",
    )
    which: tuple[RerunOutcome, ...] = Field(
        default=("infra_error",),
        min_length=1,
        max_length=4,
        description="Outcomes to run again. infra_error: no valid result. failed: the agent ended "
        "with a failure mode other than none. cancelled: ended by a cancel. unresolved: a valid "
        "result that does not resolve the task.",
        json_schema_extra=SET_LIST,
    )


class RunSpec(ApiModel):
    """Spec of a BenchmarkRun."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "self.modelLimits.all(l, self.matrix.models.exists(m, m.name == l.model))",
                "spec.modelLimits names a model that spec.matrix.models lacks",
                found=(
                    "%s; accepted: %s",
                    "self.modelLimits.filter(l, !self.matrix.models.exists(m, m.name == l.model))"
                    ".map(l, l.model)",
                    "self.matrix.models.map(m, m.name)",
                ),
                field=".modelLimits",
            ),
            cel(
                "!oldSelf.cancel || self.cancel",
                "spec.cancel cannot be taken back; accepted: true (apply a new run instead)",
                field=".cancel",
            ),
            cel(
                "self.rerun.generation >= oldSelf.rerun.generation",
                "spec.rerun.generation may only grow; accepted: the number before or more",
                found=("%d, before: %d", "self.rerun.generation", "oldSelf.rerun.generation"),
                field=".rerun.generation",
            ),
        )
    )

    benchmark: Literal["loops"] = Field(
        description="The benchmark. loops: dependency-structured tasks, adjudicated while the "
        "agent works."
    )
    tasks: Tasks = Field(description="The tasks of the run. Immutable once trials exist.")
    matrix: Matrix = Field(
        description="Who works on the tasks. A cell is one agent with one model in one loop "
        "profile on one task; without further entries the run has the full product agents x "
        "models x loopProfiles x tasks. `exclude` takes cells out, `include` then adds some; "
        "`cells` lists them explicitly instead. Every cell is done `spec.attempts` times, each "
        "attempt is one Trial."
    )
    attempts: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="How often each cell is done. May only grow once trials exist.",
    )
    attempts_by_task: tuple[TaskAttempts, ...] = Field(
        default=(),
        max_length=64,
        description="More attempts for some tasks; where several numbers apply the largest "
        "counts. May only grow once trials exist.",
        json_schema_extra=map_list("task"),
    )
    parallelism: int = Field(
        default=4, ge=1, le=10000, description="Trials of the run that may hold pods at once."
    )
    model_limits: tuple[ModelLimit, ...] = Field(
        default=(),
        max_length=32,
        description="Tighter bounds for single models.",
        json_schema_extra=map_list("model"),
    )
    priority: int = Field(
        default=0,
        ge=-1000000,
        le=1000000,
        description="Runs with a higher priority are offered places first. It starts no "
        "preemption.",
    )
    timeouts: TimeoutsSpec = Field(
        default_factory=TimeoutsSpec, description="Time limits. Immutable once trials exist."
    )
    snapshots: Snapshots = Field(
        default_factory=Snapshots,
        description="Sampling and adjudication. Immutable once trials exist.",
    )
    test_visibility: Literal["attached", "hidden"] = Field(
        default="attached",
        description="attached: the agent can read the test suites, outside its workspace. hidden: "
        "it cannot. Printed in every table. Immutable once trials exist.",
    )
    network: Literal["closed", "open"] = Field(
        default="closed",
        description="closed: agents reach nothing. open: agents reach public addresses and DNS, "
        "but no private, link-local or cluster address. Printed in every table. Immutable once "
        "trials exist.",
    )
    user_namespaces: Literal["required", "preferred", "off"] = Field(
        default="required",
        description="required: the run is refused where the nodes have no user namespaces, and a "
        "trial stops when its pods do not run in one of their own. preferred: asked for where "
        "the nodes have them, and recorded whether it was so. off: not asked for. Immutable once "
        "trials exist.",
    )
    images: Images = Field(default_factory=Images, description="How task images are pulled.")
    pod_templates: PodTemplates = Field(
        default_factory=PodTemplates,
        description="Resources and placement of the pods, by role; for trials created from now on.",
    )
    suspend: bool = Field(
        default=False,
        description="Hold the run as a Job is held: pods of active trials are deleted after a last "
        "snapshot and none is created. Set back to false, trials resume where they were; it counts "
        "as no infrastructure restart.",
    )
    cancel: bool = Field(
        default=False, description="End every trial now and start none. It cannot be taken back."
    )
    on_agent_loss: Literal["resume", "restart", "fail"] = Field(
        default="resume",
        description="When infrastructure takes the agent's pod away. resume: a new pod goes on "
        "from the last snapshot with the remaining time. restart: a new pod begins again. fail: "
        "the trial ends as infra_error.",
    )
    infra_retries: int = Field(
        default=5,
        ge=0,
        le=100,
        description="Pods of a trial that may be replaced, all infrastructure causes together.",
    )
    retention: Retention = Field(
        default_factory=Retention, description="When the run's objects are deleted."
    )
    rerun: Rerun = Field(default_factory=Rerun, description="Run finished cells again.")
