"""What the core wants done. The apply side is one `match` over `Action`, ended by `assert_never`.

Contract with apply: actions run in order and the first failure ends the plan (its key is retried
with back-off); then the status is written once; then, only if that succeeded, events are sent and
measurements counted.
Every action is idempotent, because a crash may fall between any two of them:

    Create*    an object with the same name and the same controller UID counts as created
    Delete*    an object that is gone, or has another UID, counts as deleted
    PutObject  see its own words
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stayer_evaluator.records.outcomes import Role

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTrial:
    """POST a Trial. Its document was put by an earlier action of the same plan."""

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """POST a pod. When the name is taken: adopted only if its owner UID is the trial's, it has no
    deletionTimestamp and is not terminal (design.md §3).
    """

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNetworkPolicy:
    """POST a NetworkPolicy of a run."""

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """DELETE one pod with a UID precondition; None leaves the pod's own grace."""

    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods:
    """One deletecollection over the pods that carry the trial's UID (and role, where given)."""

    namespace: str
    trial_uid: str
    role: Role | None = None
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTrial:
    """DELETE a Trial with a UID precondition; garbage collection takes its pods."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun:
    """DELETE a BenchmarkRun with a UID precondition; garbage collection takes the rest."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutObject:
    """Store bytes. `create`: conditional; equal bytes already there are success, other bytes end
    the plan with ObjectExists. `adopt`: conditional; whatever is there is success (the end entry,
    where a recorder may have won). `replace`: the newest bytes win (results of a run).
    """

    key: str
    data: bytes = field(repr=False)
    mode: Literal["create", "adopt", "replace"] = "create"


Action = (
    CreateTrial
    | CreatePod
    | CreateNetworkPolicy
    | DeletePod
    | DeletePods
    | DeleteTrial
    | DeleteRun
    | PutObject
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWrite:
    """The whole desired status of the planned object, in the API's own spelling.

    Written as a merge patch of the status subresource that carries `resource_version`; a field
    that is None is removed.
    """

    kind: Literal["BenchmarkRun", "Trial"]
    namespace: str
    name: str
    uid: str
    resource_version: str
    status: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes Event about the planned object."""

    type: Literal["Normal", "Warning"] = "Normal"
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReplaced:
    """Counted once the successor's incarnation is written. Values of `core/failures.py`."""

    role: Role
    fault: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """Counted once the terminal status is written. `seconds` since the trial started."""

    kind: str
    phase: str
    failure_mode: str
    seconds: float


Measurement = PodReplaced | TrialEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything to be done about one object now. `wake_after` is in seconds: plan again then,
    even if nothing is observed before; None waits for an observation.
    """

    actions: tuple[Action, ...] = ()
    status: StatusWrite | None = None
    events: tuple[Event, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    wake_after: float | None = None

    @property
    def is_idle(self) -> bool:
        """Nothing to write."""
        return not self.actions and self.status is None and not self.events


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A plan and the name of the rule that made it."""

    rule: str
    plan: Plan
