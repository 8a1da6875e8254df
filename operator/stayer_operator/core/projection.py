"""Raw objects of the Kubernetes API → views. Pure; unknown fields are passed over, missing ones
get the API's defaults: what a server sends is never a reason to fail.
"""

import calendar
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any

import orjson

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.api import names
from stayer_operator.core.observed import (
    ContainerEnd,
    ContainerView,
    NodeView,
    PodCondition,
    PodView,
    RunObject,
    TrialObject,
)

Raw = Mapping[str, Any]

_POD_NAME = re.compile(r"^(?P<trial>.+)-(?P<role>[ab])-(?P<incarnation>[1-9][0-9]*)$")
_RUNTIME = ("containerRuntimeVersion", "kubeletVersion", "kernelVersion", "architecture")
_PASSING_TAINTS = "node.kubernetes.io/"
_ROLES = {label: role for role, label in names.ROLE_LABELS.items()}


@lru_cache(maxsize=512)  # an object says the same times again at each of its changes
def parse_time(text: str | None) -> float | None:
    """RFC 3339 → seconds since the epoch; None for nothing and for what is no time."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return calendar.timegm(parsed.utctimetuple()) + parsed.microsecond / 1e6


def pod_view(raw: Raw) -> PodView:
    """A pod. Its trial and role come from its name where that is one of ours, else from labels."""
    metadata, spec, status = _parts(raw)
    labels: Raw = metadata.get("labels") or {}
    match = _POD_NAME.match(metadata.get("name", ""))
    return PodView(
        **_identity(metadata),
        trial=match["trial"] if match else labels.get(names.LABEL_TRIAL, ""),
        owner_uid=_controller(metadata).get("uid", ""),
        role=Role(match["role"]) if match else _role(labels),
        incarnation=int(match["incarnation"]) if match else 0,
        created=parse_time(metadata.get("creationTimestamp")) or 0.0,
        deletion=parse_time(metadata.get("deletionTimestamp")),
        deletion_grace=metadata.get("deletionGracePeriodSeconds"),
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "Pending",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        started=parse_time(status.get("startTime")),
        conditions=tuple(_conditions(status)),
        containers=tuple(_containers(status)),
    )


def trial_object(raw: Raw) -> TrialObject:
    """A Trial."""
    metadata, spec, status = _parts(raw)
    owner = _controller(metadata)
    return TrialObject(
        **_identity(metadata),
        generation=metadata.get("generation") or 0,
        created=parse_time(metadata.get("creationTimestamp")) or 0.0,
        deleted=bool(metadata.get("deletionTimestamp")),
        run=spec.get("runName") or owner.get("name", ""),
        run_uid=spec.get("runUID") or owner.get("uid", ""),
        kind=TrialKind(spec.get("kind") or TrialKind.ATTEMPT),
        spec={name: _same(name, value) for name, value in spec.items()},
        status={name: _conditions_alike(name, value) for name, value in status.items()},
    )


def _same(name: str, value: Any) -> Any:
    """One object for equal parts of many Trials' specs: a thousand of a run differ in little."""
    if name in _ALIKE:
        return _parsed(orjson.dumps(value))
    return _shared(value) if name in _NAMES else value


_ALIKE = frozenset({"task", "timeouts", "images", "podTemplates"})
_NAMES = frozenset(
    {"agent", "harness", "kind", "loopProfile", "model", "network", "onAgentLoss", "runName"}
    | {"runUID", "testVisibility", "userNamespaces"}
)


def _conditions_alike(name: str, value: Any) -> Any:
    """The same for what conditions say; only their times are each Trial's own."""
    if name != "conditions" or not value:
        return value
    return [{key: _shared(part) for key, part in condition.items()} for condition in value]


def _shared(value: Any) -> Any:
    return intern(value) if type(value) is str else value


@lru_cache(maxsize=1024)
def _parsed(text: bytes) -> Any:
    return orjson.loads(text)


def run_object(raw: Raw) -> RunObject:
    """A BenchmarkRun."""
    metadata, _, _ = _parts(raw)
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return RunObject(
        **_identity(metadata),
        generation=metadata.get("generation") or 0,
        created=parse_time(metadata.get("creationTimestamp")) or 0.0,
        deleted=bool(metadata.get("deletionTimestamp")),
        manifest={**raw, "metadata": kept},
    )


def node_view(raw: Raw) -> NodeView:
    """A node. One without a Ready condition has not been heard of yet: not ready."""
    metadata, spec, status = _parts(raw)
    ready: Raw = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), {})
    return NodeView(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        ready=ready.get("status") == "True",
        since=parse_time(ready.get("lastTransitionTime")) or 0.0,
        runtime="" if _is_reserved(spec) else _runtime(status.get("nodeInfo") or {}),
    )


def _runtime(info: Raw) -> str:
    return " ".join(str(info[fact]) for fact in _RUNTIME if info.get(fact))


def _is_reserved(spec: Raw) -> bool:
    """Whether a taint keeps pods away that do not tolerate it. Taints of Kubernetes' own, such as
    not-ready, come and go.
    """
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute")
        and not str(taint.get("key", "")).startswith(_PASSING_TAINTS)
        for taint in spec.get("taints") or ()
    )


def _parts(raw: Raw) -> tuple[Raw, Raw, Raw]:
    return raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}


def _identity(metadata: Raw) -> dict[str, Any]:
    return {
        "namespace": metadata.get("namespace", ""),
        "name": metadata.get("name", ""),
        "uid": metadata.get("uid", ""),
        "resource_version": metadata.get("resourceVersion", ""),
    }


def _controller(metadata: Raw) -> Raw:
    owners: list[Raw] = metadata.get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def _role(labels: Raw) -> Role:
    return _ROLES.get(labels.get(names.LABEL_ROLE, ""), Role.AGENT)


def _conditions(status: Raw) -> Iterator[PodCondition]:
    """Those that somebody reads."""
    for raw in status.get("conditions") or ():
        if raw.get("type") in ("PodScheduled", "DisruptionTarget"):
            yield PodCondition(
                type=raw["type"],
                status=raw.get("status", ""),
                reason=raw.get("reason") or "",
                message=raw.get("message") or "",
                since=parse_time(raw.get("lastTransitionTime")) or 0.0,
            )


def _containers(status: Raw) -> list[ContainerView]:
    return [
        _container(raw, init)
        for section, init in (("initContainerStatuses", True), ("containerStatuses", False))
        for raw in status.get(section) or ()
    ]


def _container(raw: Raw, init: bool) -> ContainerView:
    state: Raw = raw.get("state") or {}
    waiting: Raw = state.get("waiting") or {}
    end = _end(state)
    return ContainerView(
        name=raw.get("name", ""),
        init=init,
        state="terminated" if end else "running" if "running" in state else "waiting",
        reason=waiting.get("reason") or "",
        message=waiting.get("message") or "",
        started=bool(raw.get("started")),
        since=parse_time((state.get("running") or {}).get("startedAt")),
        end=end,
        last_end=_end(raw.get("lastState") or {}),
        restarts=raw.get("restartCount") or 0,
    )


def _end(state: Raw) -> ContainerEnd | None:
    raw: Raw | None = state.get("terminated")
    if raw is None:
        return None
    return ContainerEnd(
        exit_code=raw.get("exitCode") or 0,
        signal=raw.get("signal") or 0,
        reason=raw.get("reason") or "",
        message=raw.get("message") or "",
        started=parse_time(raw.get("startedAt")),
        finished=parse_time(raw.get("finishedAt")),
    )
