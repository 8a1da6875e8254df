"""The seams between reconciling and the world. Adapters fill them; memory ones are shipped too.

Every adapter translates the errors of its library: cluster trouble is `ClusterError`, store
trouble `StoreError`. Nothing else crosses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.core.observed import (
    NodeView,
    ObjectKey,
    PodView,
    Progress,
    RunObject,
    TrialObject,
)
from stayer_operator.core.plan import Event, Manifest, StatusWrite

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The Trial or run that an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str


class Cluster(Protocol):
    """Writes to the Kubernetes API, and the few reads that reconciling cannot do without.

    All raise ClusterError: AlreadyExists, Conflict, NotFound, Forbidden, QuotaExceeded, Invalid
    as their names say, ClusterUnavailable when it is not known whether the write happened.
    Objects returned are the server's own raw documents; an adapter may show them to its informer,
    so that the next plan sees what the last one did.
    """

    async def create_trial(self, manifest: Manifest) -> Raw:
        """POST a Trial; the created object."""

    async def create_pod(self, manifest: Manifest) -> Raw:
        """POST a pod; the created object."""

    async def create_network_policy(self, manifest: Manifest) -> Raw:
        """POST a NetworkPolicy; the created object."""

    async def get_trial(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""

    async def get_pod(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""

    async def get_network_policy(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""

    async def get_config_map(self, namespace: str, name: str) -> Raw:
        """GET a ConfigMap that a run names, when its tasks or scripts are resolved."""

    async def patch_status(self, write: StatusWrite) -> Raw:
        """Merge-patch the status of a Trial or run; carries resourceVersion and UID, so Conflict
        when the object is not the one that was judged. None in the status removes a field.
        """

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_seconds: int | None
    ) -> None:
        """DELETE with a UID precondition. NotFound and a different UID (Conflict) are raised."""

    async def delete_pods_of_trial(
        self, namespace: str, trial_uid: str, role: Role | None, grace_seconds: int | None
    ) -> None:
        """One deletecollection over the pods labelled with the trial's UID (and role)."""

    async def delete_trial(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition, background propagation."""

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition, background propagation."""

    async def emit_event(self, regarding: Subject, event: Event) -> None:
        """POST an Event about a Trial or run."""


class Observed(Protocol):
    """What the informers hold in memory. Nothing here waits or reads the API."""

    def trial(self, key: ObjectKey) -> TrialObject | None:
        """The Trial, None when it is not (yet, or any more) there."""

    def trials(self) -> Iterable[TrialObject]:
        """All Trials, for admission. The caller does not await while iterating."""

    def trials_of_run(self, run_uid: str) -> Sequence[TrialObject]:
        """The Trials that a run owns."""

    def pods(self, trial: ObjectKey) -> Sequence[PodView]:
        """The pods whose `trial_key` this is, whoever owns them and whether or not it exists."""

    def run(self, key: ObjectKey) -> RunObject | None:
        """The run, None when it is not there."""

    def runs(self) -> Iterable[RunObject]:
        """All runs. The caller does not await while iterating."""

    def node(self, name: str) -> NodeView | None:
        """The node, None when it is not known."""

    def progress(self, trial: ObjectKey) -> Progress | None:
        """The newest progress reports about a trial."""

    def witnessed(self, trial_uid: str) -> bool:
        """The Trial's creation came by the watch, after the first LIST: whatever pods it ever had
        were created while this process was looking.
        """


class Evidence(MutableStore, Protocol):
    """The object store, as the operator uses it to judge and end trials and to sum up runs.

    `keys` only finds the tasks of a task set; it is never asked for the truth about a trial.
    """


class Clock(Protocol):
    """The time, so that tests decide it."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch; compared with times that the API server wrote."""


class Telemetry(Protocol):
    """What reconciling counts. Label values come from closed vocabularies; never names."""

    def reconciled(self, kind: str, seconds: float, outcome: str) -> None:
        """One pass over one object; `outcome` is ok, retry or error."""

    def rule_applied(self, kind: str, rule: str) -> None:
        """The rule that decided a pass over a trial or run which had something to do."""

    def pod_replaced(self, role: str, fault: str, cause: str) -> None:
        """A pod got a successor; `fault` and `cause` as in `core/failures.py`."""

    def trial_ended(self, kind: str, phase: str, failure_mode: str, seconds: float) -> None:
        """A trial reached a terminal phase `seconds` after its start."""

    def store_failed(self, operation: str) -> None:
        """The object store refused or did not answer `get`, `create` or `put`."""

    def queue_depth(self, waiting: int) -> None:
        """Keys that wait to be reconciled."""
