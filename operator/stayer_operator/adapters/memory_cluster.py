"""A cluster in memory: the writes of the `Cluster` port with the API server's own manners.

It ships with the package as the reference implementation: tests drive whole runs over it without
a cluster, and what it does at a conflict, a taken name or a graceful delete is what the API server
does. It schedules nothing and runs nothing; the methods of the second half stand in for scheduler,
kubelet and garbage collector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from stayer_evaluator.records.outcomes import Role
from stayer_operator.api import names
from stayer_operator.core.plan import Event, Manifest, StatusWrite
from stayer_operator.core.projection import parse_time
from stayer_operator.core.trial.status import render_time
from stayer_operator.errors import AlreadyExists, Conflict, NotFound
from stayer_operator.ports import Clock, Raw, Subject

Object = dict[str, Any]
Listener = Callable[[str, str, Raw], None]
"""Called with ADDED, MODIFIED or DELETED, the kind, and the object."""

POD = "Pod"
NETWORK_POLICY = "NetworkPolicy"
CONFIG_MAP = "ConfigMap"
NODE = "Node"
DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One line of the audit log: a write and its answer."""

    verb: str
    kind: str
    name: str
    code: int


class MemoryCluster:
    """Objects by kind, namespace and name; one version counter; watchers told at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._version = 0
        self._made = 0
        self._listeners: list[Listener] = []
        self.audit: list[Request] = []
        self.events: list[tuple[Subject, Event]] = []

    async def create_trial(self, manifest: Manifest) -> Raw:
        """POST a Trial."""
        return self.create(names.TRIAL_KIND, manifest)

    async def create_pod(self, manifest: Manifest) -> Raw:
        """POST a pod."""
        return self.create(POD, {**manifest, "status": {"phase": "Pending"}})

    async def create_network_policy(self, manifest: Manifest) -> Raw:
        """POST a NetworkPolicy."""
        return self.create(NETWORK_POLICY, manifest)

    async def get_trial(self, namespace: str, name: str) -> Raw:
        """GET."""
        return self._copy(self._need(names.TRIAL_KIND, namespace, name))

    async def get_pod(self, namespace: str, name: str) -> Raw:
        """GET."""
        return self._copy(self._need(POD, namespace, name))

    async def get_network_policy(self, namespace: str, name: str) -> Raw:
        """GET."""
        return self._copy(self._need(NETWORK_POLICY, namespace, name))

    async def get_config_map(self, namespace: str, name: str) -> Raw:
        """GET."""
        return self._copy(self._need(CONFIG_MAP, namespace, name))

    async def patch_status(self, write: StatusWrite) -> Raw:
        """Merge-patch under resourceVersion and UID."""
        held = self._need(write.kind, write.namespace, write.name)
        metadata = held["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (write.uid, write.resource_version):
            self._log("patch", write.kind, write.name, 409)
            raise Conflict(f"{write.kind} {write.name} has changed", status=409)
        self._log("patch", write.kind, write.name, 200)
        merged = self._copy(merge_patch(held.get("status") or {}, write.status))
        if merged != held.get("status"):
            held["status"] = merged
            self._changed("MODIFIED", write.kind, held)
        return self._copy(held)

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_seconds: int | None
    ) -> None:
        """DELETE with a UID precondition."""
        pod = self._need(POD, namespace, name)
        if pod["metadata"]["uid"] != uid:
            self._log("delete", POD, name, 409)
            raise Conflict(f"pod {name} has another UID", status=409)
        self._log("delete", POD, name, 200)
        self._delete_gracefully(pod, grace_seconds)

    async def delete_pods_of_trial(
        self, namespace: str, trial_uid: str, role: Role | None, grace_seconds: int | None
    ) -> None:
        """Deletecollection by label."""
        self._log("deletecollection", POD, trial_uid, 200)
        for pod in self.objects(POD):
            labels = pod["metadata"].get("labels") or {}
            wanted = {names.LABEL_TRIAL_UID: trial_uid}
            if role is not None:
                wanted[names.LABEL_ROLE] = names.ROLE_LABELS[role]
            if pod["metadata"]["namespace"] == namespace and wanted.items() <= labels.items():
                self._delete_gracefully(pod, grace_seconds)

    async def delete_trial(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition."""
        self._delete_at_once(names.TRIAL_KIND, namespace, name, uid)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """DELETE with a UID precondition."""
        self._delete_at_once(names.RUN_KIND, namespace, name, uid)

    async def emit_event(self, regarding: Subject, event: Event) -> None:
        """POST an Event."""
        self._log("create", "Event", regarding.name, 201)
        self.events.append((regarding, event))

    def listen(self, listener: Listener) -> None:
        """Tell `listener` every change from now on, synchronously."""
        self._listeners.append(listener)

    def objects(self, kind: str) -> list[Object]:
        """All objects of a kind, themselves: what a LIST finds."""
        return [held for (known, _, _), held in self._objects.items() if known == kind]

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object itself, None when it is not there."""
        return self._objects.get((kind, namespace, name))

    def create(self, kind: str, manifest: Mapping[str, Any]) -> Raw:
        """What somebody else creates: runs, ConfigMaps, nodes. Raises AlreadyExists."""
        made = self._copy(dict(manifest))
        metadata = made.setdefault("metadata", {})
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        if key in self._objects:
            self._log("create", kind, metadata["name"], 409)
            raise AlreadyExists(f"{kind} {metadata['name']} exists", status=409)
        self._made += 1
        metadata |= {
            "uid": f"00000000-0000-4000-8000-{self._made:012d}",
            "generation": 1,
            "creationTimestamp": self._stamp(),
        }
        self._objects[key] = made
        self._log("create", kind, metadata["name"], 201)
        self._changed("ADDED", kind, made)
        return self._copy(made)

    def update(self, kind: str, namespace: str, name: str, change: Callable[[Object], None]) -> Raw:
        """What somebody else changes: a run's spec, a pod's binding or status, a node."""
        held = self._need(kind, namespace, name)
        spec = orjson.dumps(held.get("spec"))
        change(held)
        if orjson.dumps(held.get("spec")) != spec:
            held["metadata"]["generation"] = held["metadata"].get("generation", 0) + 1
        self._changed("MODIFIED", kind, held)
        return self._copy(held)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """The object is gone: a kubelet has finished with a pod, a person deleted a run."""
        held = self._objects.pop((kind, namespace, name), None)
        if held is not None:
            self._changed("DELETED", kind, held)

    def delete_pod_as_a_person(self, namespace: str, name: str) -> None:
        """`kubectl delete pod`: with the pod's own grace."""
        self._delete_gracefully(self._need(POD, namespace, name), None)

    def collect_garbage(self) -> None:
        """Delete what has lost its owner, with the objects' own grace."""
        alive = {held["metadata"]["uid"] for held in self._objects.values()}
        for (kind, namespace, name), held in list(self._objects.items()):
            owners = held["metadata"].get("ownerReferences") or []
            if not owners or any(owner["uid"] in alive for owner in owners):
                continue
            if kind == POD:
                self._delete_gracefully(held, None)
            else:
                self.remove(kind, namespace, name)

    def _delete_gracefully(self, pod: Object, grace_seconds: int | None) -> None:
        metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        finished = status.get("phase") in ("Succeeded", "Failed")
        if finished or not spec.get("nodeName") or grace_seconds == 0:
            self.remove(POD, metadata["namespace"], metadata["name"])
            return
        own = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        grace = own if grace_seconds is None else grace_seconds
        until = parse_time(metadata.get("deletionTimestamp"))
        if until is not None and until <= self._clock.now() + grace:
            return  # a grace is only ever shortened
        metadata["deletionTimestamp"] = render_time(self._clock.now() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        self._changed("MODIFIED", POD, pod)

    def _delete_at_once(self, kind: str, namespace: str, name: str, uid: str) -> None:
        held = self._need(kind, namespace, name)
        if held["metadata"]["uid"] != uid:
            self._log("delete", kind, name, 409)
            raise Conflict(f"{kind} {name} has another UID", status=409)
        self._log("delete", kind, name, 200)
        self.remove(kind, namespace, name)

    def _need(self, kind: str, namespace: str, name: str) -> Object:
        held = self._objects.get((kind, namespace, name))
        if held is None:
            raise NotFound(f"{kind} {namespace}/{name} not found", status=404)
        return held

    def _changed(self, type_: str, kind: str, held: Object) -> None:
        self._version += 1
        held["metadata"]["resourceVersion"] = str(self._version)
        for listener in self._listeners:
            listener(type_, kind, self._copy(held))

    def _log(self, verb: str, kind: str, name: str, code: int) -> None:
        self.audit.append(Request(verb=verb, kind=kind, name=name, code=code))

    def _stamp(self) -> str | None:
        return render_time(self._clock.now())

    @staticmethod
    def _copy(held: Object) -> Object:
        copied: Object = orjson.loads(orjson.dumps(held))
        return copied


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """RFC 7386: None removes, mappings merge, everything else replaces."""
    merged: Object = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            old = merged.get(key)
            merged[key] = merge_patch(old if isinstance(old, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
