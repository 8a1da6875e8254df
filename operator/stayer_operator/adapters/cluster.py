"""The `Cluster` port over the Kubernetes API.

Every object that a write answers with is shown to the mirrors, so that the next plan sees what the
last one did without waiting for the watch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from stayer_evaluator.records.outcomes import Role
from stayer_operator.adapters import wire
from stayer_operator.adapters.api_client import MERGE_PATCH, ApiClient, Resource
from stayer_operator.api import names
from stayer_operator.core.plan import Event, Manifest, StatusWrite
from stayer_operator.errors import ClusterUnavailable, NotFound
from stayer_operator.ports import Raw, Subject

TRIALS = Resource(group=names.GROUP, version=names.VERSION, plural=names.TRIAL_PLURAL)
RUNS = Resource(group=names.GROUP, version=names.VERSION, plural=names.RUN_PLURAL)
PODS = Resource(group="", version="v1", plural="pods")
NODES = Resource(group="", version="v1", plural="nodes")
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps")
SERVICES = Resource(group="", version="v1", plural="services")
NETWORK_POLICIES = Resource(group="networking.k8s.io", version="v1", plural="networkpolicies")
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events")

# Read as far as their views go.
DECODERS = {PODS: wire.PODS, TRIALS: wire.TRIALS}
KINDS = {names.TRIAL_KIND: TRIALS, names.RUN_KIND: RUNS}
LONGEST_NOTE = 1024  # of events.k8s.io/v1
REPORTER = f"{names.GROUP}/operator"


class Onlooker(Protocol):
    """Hears what the answers to our requests say about objects, ahead of the watch."""

    def show(self, plural: str, raw: Raw) -> None:
        """This is the object now."""

    def forget(self, plural: str, namespace: str, name: str, uid: str) -> None:
        """The object of this UID is not there any more."""


class KubernetesCluster:
    """Writes as the operator's service account; reads only where `ports.Cluster` says so."""

    def __init__(
        self,
        client: ApiClient,
        *,
        onlooker: Onlooker,
        may_write: Callable[[], bool],
        instance: str,
    ) -> None:
        """`may_write` turns false when the lease is lost: then every write raises
        ClusterUnavailable, unsent.
        """
        self._client = client
        self._onlooker = onlooker
        self._may_write = may_write
        self._instance = instance

    async def create_trial(self, manifest: Manifest) -> Raw:
        """POST a Trial; the created object."""
        return await self._create(TRIALS, manifest)

    async def create_pod(self, manifest: Manifest) -> Raw:
        """POST a pod; the created object."""
        return await self._create(PODS, manifest)

    async def create_network_policy(self, manifest: Manifest) -> Raw:
        """POST a NetworkPolicy; the created object."""
        return await self._create(NETWORK_POLICIES, manifest)

    async def get_trial(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""
        return await self._get(TRIALS, namespace, name)

    async def get_pod(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""
        return await self._get(PODS, namespace, name)

    async def get_network_policy(self, namespace: str, name: str) -> Raw:
        """GET, after AlreadyExists only."""
        return await self._get(NETWORK_POLICIES, namespace, name)

    async def get_config_map(self, namespace: str, name: str) -> Raw:
        """GET a ConfigMap that a run names."""
        return await self._get(CONFIG_MAPS, namespace, name)

    async def patch_status(self, write: StatusWrite) -> Raw:
        """Merge-patch a status under the resourceVersion and UID that were judged."""
        resource = KINDS[write.kind]
        body = {
            "metadata": {"uid": write.uid, "resourceVersion": write.resource_version},
            "status": write.status,
        }
        with self._forgetting(resource, write.namespace, write.name, write.uid):
            answer = await self._write(
                "patch",
                "PATCH",
                resource.path(write.namespace, write.name, "status"),
                body=body,
                content_type=MERGE_PATCH,
                decode=DECODERS.get(resource, wire.WHOLE).one,
            )
        self._onlooker.show(resource.plural, answer)
        return answer

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_seconds: int | None
    ) -> None:
        """DELETE with a UID precondition."""
        body = _delete_options(uid, grace_seconds)
        with self._forgetting(PODS, namespace, name, uid):
            answer = await self._write("delete", "DELETE", PODS.path(namespace, name), body=body)
        if answer.get("kind") == "Pod":
            self._onlooker.show(PODS.plural, answer)

    async def delete_pods_of_trial(
        self, namespace: str, trial_uid: str, role: Role | None, grace_seconds: int | None
    ) -> None:
        """One deletecollection over the pods labelled with the trial's UID (and role)."""
        selector = f"{names.LABEL_TRIAL_UID}={trial_uid}"
        if role is not None:
            selector += f",{names.LABEL_ROLE}={names.ROLE_LABELS[role]}"
        await self._write(
            "deletecollection",
            "DELETE",
            PODS.path(namespace),
            params={"labelSelector": selector},
            body=_delete_options(None, grace_seconds),
            decode=None,
        )

    async def delete_trial(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition, background propagation."""
        await self._delete(TRIALS, namespace, name, uid)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition, background propagation."""
        await self._delete(RUNS, namespace, name, uid)

    async def emit_event(self, regarding: Subject, event: Event) -> None:
        """POST an Event about a Trial or run."""
        manifest = event_manifest(regarding, event, self._instance, datetime.now(UTC))
        path = EVENTS.path(regarding.namespace)
        await self._write("create", "POST", path, body=manifest, decode=None)

    async def _delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        body = _delete_options(uid, None, propagation="Background")
        with self._forgetting(resource, namespace, name, uid):
            path = resource.path(namespace, name)
            await self._write("delete", "DELETE", path, body=body, decode=None)

    @contextmanager
    def _forgetting(
        self, resource: Resource, namespace: str, name: str, uid: str
    ) -> Iterator[None]:
        """A 404 proves that the object is gone, whatever the watch has told."""
        try:
            yield
        except NotFound:
            self._onlooker.forget(resource.plural, namespace, name, uid)
            raise

    async def _create(self, resource: Resource, manifest: Manifest) -> Raw:
        path = resource.path(manifest["metadata"]["namespace"])
        decode = DECODERS.get(resource, wire.WHOLE).one
        answer = await self._write("create", "POST", path, body=manifest, decode=decode)
        self._onlooker.show(resource.plural, answer)
        return answer

    async def _get(self, resource: Resource, namespace: str, name: str) -> Raw:
        path = resource.path(namespace, name)
        answer: Raw = await self._client.request("get", "GET", path)
        self._onlooker.show(resource.plural, answer)
        return answer

    async def _write(
        self,
        verb: str,
        method: str,
        path: str,
        *,
        body: Any,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        decode: wire.Decode | None = wire.anything,
    ) -> Raw:
        if not self._may_write():
            raise ClusterUnavailable(f"{method} {path}: not sent, another operator may lead now")
        answer: Raw = await self._client.request(
            verb,
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            decode=decode,
        )
        return answer


def event_manifest(
    regarding: Subject, event: Event, instance: str, now: datetime
) -> dict[str, Any]:
    """An events.k8s.io/v1 Event; the note is cut to what the API takes."""
    # Unique without asking: one process does not send two Events in one nanosecond.
    name = f"{regarding.name}.{time.time_ns():x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": regarding.namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": event.type,
        "reason": event.reason,
        "note": event.message[:LONGEST_NOTE],
        "action": "Reconcile",
        "reportingController": REPORTER,
        "reportingInstance": instance,
        "regarding": {
            "apiVersion": names.API_VERSION,
            "kind": regarding.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": regarding.uid,
        },
    }


def _delete_options(
    uid: str | None, grace_seconds: int | None, propagation: str | None = None
) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid is not None:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return options
