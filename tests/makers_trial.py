"""Trials, pods and settings for tests of the trial core."""

import datetime
from collections.abc import Sequence
from typing import Any

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_evaluator.records.reports import TerminationMessage
from stayer_operator.api import names
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec, parse_trial_spec

NAMESPACE = "lab"
RUN = "demo"
RUN_UID = "11111111-1111-4111-8111-111111111111"
TRIAL = "demo-0123456789"
TRIAL_UID = "22222222-2222-4222-8222-222222222222"
INVENTORY = "demo-inv-9876543210"
INVENTORY_UID = "33333333-3333-4333-8333-333333333333"
PREFIX = f"runs/{NAMESPACE}/{RUN}-{RUN_UID[:8]}/{TRIAL}/"


def make_pod_settings(**changes: Any) -> PodSettings:
    return PodSettings(
        **{
            "evaluator_image": "registry.example/stayer-evaluator:0.1.0",
            "runner_image": "registry.example/stayer-runner:0.1.0",
            "relay_url": "http://stayer-relay.stayer.svc:8088",
            "relay_ip": "10.96.0.11",
            "progress_url": "http://stayer-progress.stayer.svc:8087",
            "progress_ip": "10.96.0.12",
            "must_fail": ("10.96.0.1:443",),
            **changes,
        }
    )


def make_raw_spec(**changes: Any) -> dict[str, Any]:
    """A Trial's spec as the API holds it."""
    return {
        "kind": "attempt",
        "runName": RUN,
        "runUID": RUN_UID,
        "task": {
            "name": "parser",
            "digest": "a" * 64,
            "image": "registry.example/parser@sha256:" + "b" * 64,
        },
        "agent": "oracle",
        "harness": "oracle",
        "model": "none",
        "loopProfile": "outer",
        "attempt": 1,
        "document": {"key": f"{PREFIX}trial.json", "sha256": "c" * 64},
        "prefix": PREFIX,
        "timeouts": {"agentSeconds": 1800, "testSeconds": 600, "drainSeconds": 7200},
        "onAgentLoss": "resume",
        "infraRetries": 3,
        "network": "closed",
        "userNamespaces": "required",
        "images": {"pullSecrets": [], "pullPolicy": "IfNotPresent"},
        "podTemplates": {},
        **changes,
    }


def make_spec(**changes: Any) -> TrialSpec:
    return parse_trial_spec(make_raw_spec(**changes))


def make_identity(**changes: Any) -> TrialIdentity:
    return TrialIdentity(**{"namespace": NAMESPACE, "name": TRIAL, "uid": TRIAL_UID, **changes})


def make_raw_trial(
    *, status: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    """A Trial object as the API holds it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TRIAL_KIND,
        "metadata": {
            "namespace": NAMESPACE,
            "name": TRIAL,
            "uid": TRIAL_UID,
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [names.owner_reference(names.RUN_KIND, RUN, RUN_UID)],
            **metadata,
        },
        "spec": spec or make_raw_spec(),
        "status": status or {},
    }


def at(seconds: float) -> str:
    """RFC 3339 of 2026-01-01T00:00:00Z + `seconds`."""
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
        seconds=seconds
    )
    return moment.isoformat().replace("+00:00", "Z")


EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()


def running(name: str, *, since: float = 10, **more: Any) -> dict[str, Any]:
    """A containerStatus."""
    return {"name": name, "state": {"running": {"startedAt": at(since)}}, "started": True, **more}


def waiting(name: str, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "state": {"waiting": {"reason": reason, "message": message}},
        "started": False,
        **more,
    }


def terminated(
    name: str,
    exit_code: int,
    reason: str = "",
    *,
    message: str = "",
    finished: float = 100,
    **more: Any,
) -> dict[str, Any]:
    return {"name": name, "state": ended(exit_code, reason, message, finished), **more}


def ended(
    exit_code: int, reason: str = "", message: str = "", finished: float = 100
) -> dict[str, Any]:
    """The state of an ended container."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "message": message,
            "startedAt": at(10),
            "finishedAt": at(finished),
        }
    }


def said(kind: str, **fields: Any) -> str:
    """A sidecar's termination message."""
    return TerminationMessage(kind=kind, **fields).to_bytes().decode()


def condition(
    type_: str, status: str = "True", reason: str = "", message: str = "", since: float = 1
) -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(since),
    }


def make_raw_pod(
    role: Role = Role.AGENT,
    incarnation: int = 1,
    *,
    phase: str = "Running",
    reason: str = "",
    message: str = "",
    conditions: Sequence[dict[str, Any]] | None = None,
    inits: Sequence[dict[str, Any]] = (),
    containers: Sequence[dict[str, Any]] = (),
    deletion: float | None = None,
    grace: int = 600,
    node: str = "node-1",
    trial: str = TRIAL,
    trial_uid: str = TRIAL_UID,
    created: float = 0,
) -> dict[str, Any]:
    """A pod as the API holds it."""
    name = names.pod_name(trial, role, incarnation)
    metadata: dict[str, Any] = {
        "namespace": NAMESPACE,
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": "9",
        "creationTimestamp": at(created),
        "labels": names.pod_labels(
            run=RUN,
            run_uid=RUN_UID,
            trial=trial,
            trial_uid=trial_uid,
            role=role,
            kind=TrialKind.ATTEMPT,
        ),
        "ownerReferences": [names.owner_reference(names.TRIAL_KIND, trial, trial_uid)],
    }
    if deletion is not None:
        metadata |= {"deletionTimestamp": at(deletion), "deletionGracePeriodSeconds": grace}
    if conditions is None:
        conditions = [condition("PodScheduled")] if node else []
    return {
        "metadata": metadata,
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "reason": reason,
            "message": message,
            "conditions": list(conditions),
            "initContainerStatuses": list(inits),
            "containerStatuses": list(containers),
        },
    }
