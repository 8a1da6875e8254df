"""The installed operator on the real cluster: Ready, least rights, one leader, quick to return."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from makers_kubectl import Kubectl, find_kubectl

pytestmark = pytest.mark.cluster

NAMESPACE = "stayer-system"
RUNS = "stayer-runs"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:stayer-operator"
SELECTOR = "app.kubernetes.io/name=stayer,app.kubernetes.io/component=operator"


@pytest.fixture(scope="module")
def kubectl() -> Kubectl:
    return find_kubectl()


def read(kubectl: Kubectl, *arguments: str) -> Any:
    return json.loads(kubectl.must(*arguments, "-n", NAMESPACE, "-o", "json"))


def operators(kubectl: Kubectl) -> list[dict[str, Any]]:
    return list(read(kubectl, "get", "pods", "-l", SELECTOR)["items"])


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.5)
    return time.monotonic() - began


def one_is_ready(kubectl: Kubectl) -> bool:
    return [is_ready(pod) for pod in operators(kubectl)] == [True]


def can(kubectl: Kubectl, *question: str) -> bool:
    _, said = kubectl("auth", "can-i", *question)
    lines = said.splitlines()  # warnings stand between
    assert "yes" in lines or any(line.startswith("no") for line in lines), said
    return "yes" in lines


def test_operator_and_relays_are_ready(kubectl: Kubectl) -> None:
    for name in ("stayer-operator", "stayer-relay"):
        kubectl.must("rollout", "status", f"deployment/{name}", "-n", NAMESPACE, "--timeout=60s")


def test_metrics_are_served_in_the_exposition_format(kubectl: Kubectl) -> None:
    wait_for(lambda: one_is_ready(kubectl), 60, "one ready operator")
    address = operators(kubectl)[0]["status"]["podIP"]
    with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=10) as answer:
        text = answer.read().decode()
    for metric in (
        "stayer_trials{",
        "stayer_queue_depth",
        "stayer_api_requests_total{",
        "stayer_snapshots_queued",
        "stayer_verdicts_total{",
        "process_resident_memory_bytes",
    ):
        assert f"\n{metric}" in text
    assert "_created" not in text


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "allowed"),
    [
        ("create", "pods", RUNS, True),
        ("deletecollection", "pods", RUNS, True),
        ("patch", "trials.stayer.dev/status", RUNS, True),
        ("create", "networkpolicies.networking.k8s.io", RUNS, True),
        ("list", "nodes", None, True),
        ("patch", "benchmarkruns.stayer.dev", RUNS, False),
        ("get", "secrets", RUNS, False),
        ("get", "secrets", NAMESPACE, False),
        ("create", "pods", NAMESPACE, True),  # the probe pod
        ("deletecollection", "pods", NAMESPACE, False),
        ("list", "deployments.apps", NAMESPACE, False),
        ("create", "pods", "default", False),
        ("list", "pods", "kube-system", False),
        ("create", "pods/exec", RUNS, False),
    ],
)
def test_the_operators_rights(
    kubectl: Kubectl, verb: str, resource: str, namespace: str | None, allowed: bool
) -> None:
    where = ["-n", namespace] if namespace else []
    what, _, subresource = resource.partition("/")
    if subresource:
        where.append(f"--subresource={subresource}")
    assert can(kubectl, verb, what, "--as", ACCOUNT, *where) is allowed


def test_the_lease_right_ends_at_our_lease(kubectl: Kubectl) -> None:
    where = ("--as", ACCOUNT, "-n", NAMESPACE)
    assert can(kubectl, "update", "leases.coordination.k8s.io/stayer-operator", *where)
    assert not can(kubectl, "update", "leases.coordination.k8s.io/another", *where)


def test_the_account_of_trial_pods_can_do_nothing(kubectl: Kubectl) -> None:
    account = f"system:serviceaccount:{RUNS}:stayer-trial"
    for verb, resource in (("get", "pods"), ("get", "secrets"), ("list", "trials.stayer.dev")):
        assert not can(kubectl, verb, resource, "--as", account, "-n", RUNS)


def test_a_second_operator_waits_and_gets_no_traffic(kubectl: Kubectl) -> None:
    wait_for(lambda: one_is_ready(kubectl), 60, "one ready operator")
    [leader] = operators(kubectl)
    scale = ("scale", "deployment/stayer-operator", "-n", NAMESPACE)
    kubectl.must(*scale, "--replicas=2")
    try:
        wait_for(
            lambda: sum(p["status"].get("phase") == "Running" for p in operators(kubectl)) == 2,
            60,
            "a second operator that runs",
        )
        time.sleep(3)  # longer than it takes to become Ready with nobody else there
        ready = [pod["metadata"]["name"] for pod in operators(kubectl) if is_ready(pod)]
        assert ready == [leader["metadata"]["name"]]
        slices = read(
            kubectl, "get", "endpointslices", "-l", "kubernetes.io/service-name=stayer-operator"
        )
        addresses = [
            address
            for part in slices["items"]
            for endpoint in part["endpoints"] or ()
            if endpoint["conditions"]["ready"]
            for address in endpoint["addresses"]
        ]
        assert addresses == [leader["status"]["podIP"]]
    finally:
        kubectl.must(*scale, "--replicas=1")
        wait_for(lambda: one_is_ready(kubectl), 90, "one ready operator again")


def test_a_deleted_operator_is_replaced_without_waiting_for_the_lease(kubectl: Kubectl) -> None:
    wait_for(lambda: one_is_ready(kubectl), 60, "one ready operator")
    [old] = operators(kubectl)
    name = old["metadata"]["name"]
    kubectl.must("delete", "pod", name, "-n", NAMESPACE, "--wait=true", "--timeout=30s")
    lease = read(kubectl, "get", "lease", "stayer-operator")["spec"]
    assert lease["holderIdentity"] != old["metadata"]["uid"]
    wait_for(lambda: one_is_ready(kubectl), 60, "its successor")
