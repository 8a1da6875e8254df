"""Trials, pods and settings for tests of the trial core."""

from typing import Any

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
