"""What the operator sees of the cluster: small frozen views of only the fields that are used.

The informer makes them of raw objects once, when they arrive (`projection.py`); rules and gather
read them and never a raw object. Times are seconds since the epoch. What a pod consists of is made
at each of its changes: as named tuples, which are the cheapest to make.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from stayer_evaluator.records.outcomes import Role, TrialKind


class ObjectKey(NamedTuple):
    """An object of a known kind."""

    namespace: str
    name: str


class ContainerEnd(NamedTuple):
    """One ended life of a container."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started: float | None = None
    finished: float | None = None


class ContainerView(NamedTuple):
    """One container of a pod, init containers and sidecars too."""

    name: str
    init: bool = False
    state: Literal["waiting", "running", "terminated"] = "waiting"
    reason: str = ""  # of waiting: ImagePullBackOff, CrashLoopBackOff, ...
    message: str = ""
    started: bool = False  # its startup probe succeeded
    since: float | None = None  # startedAt while it is running
    end: ContainerEnd | None = None  # of this life
    last_end: ContainerEnd | None = None  # of the life before; restarting a sidecar moves it here
    restarts: int = 0

    @property
    def ends(self) -> tuple[ContainerEnd, ...]:
        """Known ends, newest first."""
        if self.end is None and self.last_end is None:
            return ()  # most sights of most containers
        return tuple(end for end in (self.end, self.last_end) if end is not None)


class PodCondition(NamedTuple):
    """One condition of a pod's status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float = 0.0  # lastTransitionTime


class PodView(NamedTuple):
    """A pod of a trial."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    trial: str  # name of the Trial by label; its UID is `owner_uid`
    owner_uid: str  # controller reference; empty when nobody owns it
    role: Role
    incarnation: int  # by the pod's name; 0 when the name is not ours
    created: float
    deletion: float | None = None  # deletionTimestamp: when the grace is over
    deletion_grace: int | None = None
    node: str = ""
    phase: str = "Pending"
    reason: str = ""  # status.reason: Evicted, NodeLost, ...
    message: str = ""
    started: float | None = None  # status.startTime: the kubelet took it
    conditions: tuple[PodCondition, ...] = ()
    containers: tuple[ContainerView, ...] = ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def trial_key(self) -> ObjectKey:
        """The Trial that it says it belongs to."""
        return ObjectKey(self.namespace, self.trial)

    @property
    def is_terminal(self) -> bool:
        """No container of it will ever run again."""
        return self.phase in ("Succeeded", "Failed")

    def condition(self, type_: str) -> PodCondition | None:
        """The condition of that type."""
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None

    def container(self, name: str) -> ContainerView | None:
        """The container of that name."""
        for container in self.containers:
            if container.name == name:
                return container
        return None

    @property
    def scheduled_since(self) -> float | None:
        """When it got its node; None while it has none."""
        scheduled = self.condition("PodScheduled")
        if scheduled is None or scheduled.status != "True":
            return None
        return scheduled.since

    @property
    def is_unschedulable(self) -> bool:
        """The scheduler looked and found no node."""
        scheduled = self.condition("PodScheduled")
        return (
            scheduled is not None
            and scheduled.status == "False"
            and scheduled.reason == "Unschedulable"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node, as far as lost pods and the features of new ones need it."""

    name: str
    uid: str
    resource_version: str
    ready: bool
    since: float  # when `ready` last changed
    runtime: str = ""  # what decides which features its pods have; empty: reserved for some pods

    @property
    def namespace(self) -> str:
        """Nodes have none."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialObject:
    """A Trial. `spec` and `status` are the API's own documents and are never changed."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    created: float
    deleted: bool
    run: str
    run_uid: str
    kind: TrialKind
    spec: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def run_key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObject:
    """A BenchmarkRun. `manifest` is the API's own document (without managedFields)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    created: float
    deleted: bool
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The newest progress reports of a trial, both roles folded into one. None = not known."""

    round: int | None = None
    snapshots_taken: int | None = None
    snapshots_adjudicated: int | None = None
    units_cleared: int | None = None
    units_total: int | None = None
    regressions: int | None = None
    recoveries: int | None = None
