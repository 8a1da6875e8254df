"""An operator of the tests' own, beside the installed one: a process of this machine that serves
a namespace of its own, so that settings can differ without disturbing anybody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from makers_cluster import RUNS, SYSTEM, Api, Document, Installed, pods_path, until
from makers_store import free_port

ACCOUNT = "stayer-trial"
OURS = "stayer-trials"
TRIAL_PODS = {"matchExpressions": [{"key": "stayer.dev/trial-uid", "operator": "Exists"}]}


def policies_path(namespace: str, name: str = "") -> str:
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    return f"{path}/{name}" if name else path


def make_policy(namespace: str, name: str, **spec: Any) -> Document:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


@contextmanager
def run_namespace(api: Api, name: str) -> Iterator[str]:
    """A namespace as the chart makes them for runs: labels, account, policy; the relay lets its
    pods in.
    """
    labels = api.call("GET", f"/api/v1/namespaces/{RUNS}").json()["metadata"]["labels"]
    security = {k: v for k, v in labels.items() if k.startswith("pod-security.kubernetes.io/")}
    api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": security}})
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    try:
        api.post(accounts, {"metadata": {"name": ACCOUNT}, "automountServiceAccountToken": False})
        ours = api.call("GET", policies_path(RUNS, OURS)).json()["spec"]
        api.post(policies_path(name), make_policy(name, OURS, **ours))
        api.post(policies_path(SYSTEM), _relay_policy(name))
        until(lambda: api.find(f"{accounts}/default"), "the namespace's default account", 30)
        yield name
    finally:
        api.delete(policies_path(SYSTEM, name))
        api.delete(f"/api/v1/namespaces/{name}")


def _relay_policy(namespace: str) -> Document:
    source = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "podSelector": TRIAL_PODS,
    }
    relay = {"app.kubernetes.io/name": "stayer", "app.kubernetes.io/component": "relay"}
    ingress = [{"from": [source], "ports": [{"protocol": "TCP", "port": 8088}]}]
    return make_policy(
        SYSTEM,
        namespace,
        podSelector={"matchLabels": relay},
        policyTypes=["Ingress"],
        ingress=ingress,
    )


@dataclass(frozen=True)
class OwnOperator:
    """A running one."""

    installed: Installed
    namespace: str
    lease: str
    log: Path
    deployment: str = ""

    @property
    def served(self) -> Installed:
        """The product as seen from its namespace."""
        return Installed(self.installed.api, self.namespace)

    def said(self, event: str) -> list[Document]:
        """What it logged under this name."""
        lines = (line for line in self.log.read_text().splitlines() if line.startswith("{"))
        return [entry for entry in map(json.loads, lines) if entry.get("event") == event]

    def probe_pods(self, namespace: str) -> list[Document]:
        """Its probe pods."""
        selector = f"stayer.dev/probe-of={self.deployment or self.lease}"
        return self.installed.api.list(pods_path(namespace), labelSelector=selector)


@contextmanager
def own_operator(
    installed: Installed, namespace: str, log: Path, **settings: str
) -> Iterator[OwnOperator]:
    """Configured as the installed one but for `settings`; ready when the block begins."""
    [pod] = installed.operators()
    [container] = pod["spec"]["containers"]
    given = {e["name"]: e["value"] for e in container["env"] if "value" in e}
    deployment = settings.get("STAYER_DEPLOYMENT", "")
    found = OwnOperator(installed, namespace, f"operator-of-{namespace}", log, deployment)
    env = {
        **os.environ,
        **given,
        "STAYER_RUN_NAMESPACES": namespace,
        "STAYER_DEPLOYMENT": deployment,
        "STAYER_LEASE_NAME": found.lease,
        "POD_NAME": found.lease,
        "STAYER_MUST_FAIL": api_server(installed.api),
        "STAYER_METRICS_PORT": str(free_port()),
        "STAYER_PROGRESS_PORT": str(free_port()),
        **settings,
    }
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "stayer_operator"], env=env, stdout=stream, stderr=stream
        )
    try:
        until(lambda: found.said("ready"), "an operator of the tests' own", 90, log.read_text)
        yield found
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        process.terminate()
        process.wait(30)
        _tidy(found, settings.get("STAYER_NAMESPACE", SYSTEM))


def _tidy(operator: OwnOperator, system: str) -> None:
    """Nothing of it stays where others live."""
    if system != SYSTEM:
        return  # goes with the namespace
    api = operator.installed.api
    for pod in operator.probe_pods(SYSTEM):
        api.delete(pods_path(SYSTEM, pod["metadata"]["name"]))
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
    api.delete(f"{leases}/{operator.lease}")


def api_server(api: Api) -> str:
    """host:port of the API server's Service."""
    spec = api.call("GET", "/api/v1/namespaces/default/services/kubernetes").json()["spec"]
    return f"{spec['clusterIP']}:{spec['ports'][0]['port']}"
