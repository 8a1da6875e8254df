"""Carries out a plan: actions in order, then the status once, then events and measurements."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never

import structlog

from stayer_evaluator.storage.store import ObjectExists, StoreError
from stayer_operator.api import names
from stayer_operator.api.conditions import Reason
from stayer_operator.core.plan import (
    Action,
    CreateNetworkPolicy,
    CreatePod,
    CreateTrial,
    DeletePod,
    DeletePods,
    DeleteRun,
    DeleteTrial,
    Event,
    Manifest,
    Measurement,
    Plan,
    PodReplaced,
    PutObject,
    TrialEnded,
)
from stayer_operator.core.projection import pod_view
from stayer_operator.core.trial.status import TrialStatus
from stayer_operator.errors import (
    AlreadyExists,
    ClusterError,
    ClusterUnavailable,
    Conflict,
    NameTaken,
    NotFound,
    QuotaExceeded,
)
from stayer_operator.ports import Clock, Cluster, Evidence, Raw, Subject, Telemetry
from stayer_operator.reconcile.ledger import Ledger, TrialNotes

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """Where plans are carried out."""

    cluster: Cluster
    evidence: Evidence
    clock: Clock
    telemetry: Telemetry
    ledger: Ledger

    async def apply(self, plan: Plan, subject: Subject) -> None:
        """Do everything that the plan says about one object.

        Raises ClusterError, NameTaken or StoreError at the first thing that does not work; what
        was done before it stays done, and doing it again is harmless.
        """
        for action in plan.actions:
            await self._perform(action)
        if plan.status is not None:
            try:
                await self.cluster.patch_status(plan.status)
            except NotFound:
                return  # deleted meanwhile; nobody reads its status any more
            notes = self.ledger.find(plan.status.uid)
            if notes is not None:
                notes.written_at = self.clock.now()
        for event in plan.events:
            await self._emit(subject, event)
        for measurement in plan.measurements:
            self._measure(measurement)

    async def _perform(self, action: Action) -> None:
        match action:
            case CreatePod():
                await self._create_pod(action.manifest)
            case CreateTrial():
                await self._create_trial(action.manifest)
            case CreateNetworkPolicy():
                await self._create_network_policy(action.manifest)
            case PutObject():
                await self._put(action)
            case DeletePod() | DeletePods() | DeleteTrial() | DeleteRun():
                # Gone, or replaced by another of the same name: what was to be deleted is.
                with suppress(NotFound, Conflict):
                    await self._delete(action)
            case _:
                assert_never(action)

    async def _delete(self, action: DeletePod | DeletePods | DeleteTrial | DeleteRun) -> None:
        cluster, namespace = self.cluster, action.namespace
        match action:
            case DeletePod(name=name, uid=uid, grace_seconds=grace):
                await cluster.delete_pod(namespace, name, uid, grace)
            case DeletePods(trial_uid=uid, role=role, grace_seconds=grace):
                await cluster.delete_pods_of_trial(namespace, uid, role, grace)
                if role is None and (notes := self.ledger.find(uid)) is not None:
                    notes.swept_at = self.clock.now()
            case DeleteTrial(name=name, uid=uid):
                await cluster.delete_trial(namespace, name, uid)
            case DeleteRun(name=name, uid=uid):
                await cluster.delete_run(namespace, name, uid)
            case _:
                assert_never(action)

    async def _create_trial(self, manifest: Manifest) -> None:
        try:
            made = await self.cluster.create_trial(manifest)
        except AlreadyExists:
            namespace, name = _address(manifest)
            _same_owner(await self.cluster.get_trial(namespace, name), manifest)
            return
        self.ledger.trial_created(made["metadata"]["uid"])

    async def _create_network_policy(self, manifest: Manifest) -> None:
        try:
            await self.cluster.create_network_policy(manifest)
        except AlreadyExists:
            namespace, name = _address(manifest)
            _same_owner(await self.cluster.get_network_policy(namespace, name), manifest)

    async def _create_pod(self, manifest: Manifest) -> None:
        """POST, and take note of it: before it is sent that it is wanted, afterwards that it is
        there. Without an answer neither is certain, and the same POST is simply sent again.
        """
        _, name = _address(manifest)
        notes = self.ledger.meet(_owner(manifest), TrialStatus(), witnessed=False)
        notes.tried.setdefault(name, self.clock.now())
        try:
            await self.cluster.create_pod(manifest)
        except AlreadyExists:
            await self._adopt(manifest, notes)
        except ClusterUnavailable:
            raise
        except ClusterError as error:
            notes.trouble = _trouble(error)
            raise
        notes.posted[name] = self.clock.now()
        notes.trouble = None

    async def _adopt(self, manifest: Manifest, notes: TrialNotes) -> None:
        """The name is taken: by our own pod, alive, it counts as created; by anything else we
        wait, or the next plan takes the next incarnation. Raises NameTaken.
        """
        namespace, name = _address(manifest)
        held = await self.cluster.get_pod(namespace, name)
        _same_owner(held, manifest)
        pod = pod_view(held)
        if pod.deletion is None and not pod.is_terminal:
            return
        notes.seen[name] = pod
        raise NameTaken(f"pod {namespace}/{name} exists and has ended")

    async def _put(self, put: PutObject) -> None:
        try:
            match put.mode:
                case "create":
                    await self.evidence.create(put.key, put.data)
                case "adopt":
                    with suppress(ObjectExists):
                        await self.evidence.create(put.key, put.data)
                case "replace":
                    await self.evidence.put(put.key, put.data)
                case _:
                    assert_never(put.mode)
        except ObjectExists:
            raise
        except StoreError:
            self.telemetry.store_failed("put" if put.mode == "replace" else "create")
            raise

    async def _emit(self, subject: Subject, event: Event) -> None:
        """Events are for people; the next ones are told all the same."""
        try:
            await self.cluster.emit_event(subject, event)
        except ClusterError as error:
            log.info("event not sent", subject=subject.name, reason=event.reason, error=str(error))

    def _measure(self, measurement: Measurement) -> None:
        match measurement:
            case PodReplaced(role=role, fault=fault, cause=cause):
                self.telemetry.pod_replaced(names.ROLE_LABELS[role], fault, cause)
            case TrialEnded(kind=kind, phase=phase, failure_mode=mode, seconds=seconds):
                self.telemetry.trial_ended(kind, phase, mode, seconds)
            case _:
                assert_never(measurement)


def _address(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata["namespace"], metadata["name"]


def _owner(document: Raw) -> str:
    owners: list[dict[str, Any]] = document["metadata"].get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def _same_owner(held: Raw, manifest: Manifest) -> None:
    """Raises NameTaken for an object of another owner or one that is being deleted."""
    namespace, name = _address(manifest)
    if _owner(held) != _owner(manifest):
        raise NameTaken(f"{namespace}/{name} belongs to something else; waiting for it to go")
    if held.get("kind") != "Pod" and held["metadata"].get("deletionTimestamp"):
        raise NameTaken(f"{namespace}/{name} is being deleted; waiting for it to go")


def _trouble(error: ClusterError) -> tuple[str, str]:
    quota = isinstance(error, QuotaExceeded)
    return (Reason.QUOTA_EXCEEDED if quota else Reason.PODS_STARTING).value, str(error)
