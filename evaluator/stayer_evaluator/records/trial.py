"""`trial.json`: everything a trial means, resolved once by the operator and then immutable."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import TrialKind


class TaskReference(Record):
    """The task of a trial."""

    name: str
    digest: str = Field(description="sha256 over task directory and image digest, 64 hex digits")
    image: str = Field(description="image reference of the task container, with digest")


class AgentSettings(Record):
    """Who works: a harness by name and what it is given."""

    name: str
    harness: str = Field(description="name of a harness description: oracle, nop, scripted, ...")
    script: str | None = Field(default=None, description="YAML text of the scripted harness")
    env: dict[str, str] = Field(default_factory=dict)


class LoopProfile(Record):
    """Outer loop of evaluation.md §5."""

    name: str = "outer-loop"
    outer_loop_count: int = Field(default=3, ge=0, description="0 = until the time is spent")
    rate_limit_retries_per_round: int = Field(default=5, ge=0)
    rate_limit_backoff_seconds: int = Field(default=45, ge=1)


class Timeouts(Record):
    """All in seconds."""

    agent_seconds: int = Field(default=1800, ge=1)
    test_seconds: int = Field(default=3600, ge=1, description="one adjudication of one unit")
    drain_seconds: int = Field(default=7200, ge=1, description="adjudicating after the episode")


class SnapshotSettings(Record):
    """Sampling and the checkpoint rule of evaluation.md §3."""

    interval_seconds: int = Field(default=15, ge=1)
    between_steps_only: bool = Field(
        default=False, description="no timed samples: one after each scripted step"
    )
    every_snapshot: bool = Field(default=False, description="adjudicate every snapshot")
    min_diff_lines: int = Field(default=5, ge=0)
    coalesce: bool = False
    public_excludes: bool = False
    excludes: tuple[str, ...] = ()
    max_files: int = Field(default=200_000, ge=1)
    max_bytes: int = Field(default=8 * 1024**3, ge=1)


class TrialDocument(Record):
    """The resolved trial. Its sha256 stands in the Trial's spec."""

    schema_version: Literal["stayer.dev/trial/v1"] = "stayer.dev/trial/v1"
    kind: TrialKind = TrialKind.ATTEMPT
    namespace: str
    run: str
    run_uid: str
    trial: str
    prefix: str = Field(description="key prefix of the trial's evidence, with trailing slash")
    benchmark: Literal["loops"] = "loops"
    task: TaskReference
    agent: AgentSettings | None = Field(default=None, description="null for an inventory trial")
    model: str | None = None
    loop: LoopProfile = LoopProfile()
    attempt: int = Field(default=1, ge=1)
    timeouts: Timeouts = Timeouts()
    snapshots: SnapshotSettings = SnapshotSettings()
    test_visibility: Literal["attached", "hidden"] = "attached"
    network: Literal["closed", "open"] = "closed"
    user_namespaces: Literal["required", "preferred", "off"] = "required"
    grants: tuple[Literal["gold", "suite"], ...] = Field(
        default=(), description="what the relay lets the agent pod's sidecar read besides `public`"
    )
    versions: dict[str, str] = Field(default_factory=dict)
