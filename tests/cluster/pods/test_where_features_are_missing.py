"""Operators of the tests' own, each where something is missing: image volumes, user namespaces,
the policy that isolates trial pods.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from makers_cluster import (
    SYSTEM,
    Document,
    Installed,
    Run,
    condition,
    describe,
    phase,
    pods_path,
    reason,
    run_manifest,
    unique_name,
    until,
)
from makers_faults import Audit
from makers_outcome import read_evidence, read_object
from makers_own_operator import (
    OwnOperator,
    api_server,
    make_policy,
    own_operator,
    policies_path,
    run_namespace,
)
from makers_pods import NOP, task_digest
from makers_taskset import TASKSET
from stayer_evaluator.storage.layout import TaskKeys

pytestmark = pytest.mark.cluster

ORACLE = {"name": "oracle", "harness": "oracle"}
PROBE_OF = "stayer.dev/probe-of"
# An image of the cluster that has no runner in it: pods with it are made, and cannot start.
NO_RUNNER = f"{os.environ.get('STAYER_REGISTRY', '127.0.0.1:5000')}/base/debian-python:12"


@pytest.fixture(scope="module")
def copying(
    installed: Installed, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnOperator]:
    """An operator for nodes without image volumes; user namespaces it finds out by itself."""
    log = tmp_path_factory.mktemp("copying") / "operator.log"
    with own_operator(installed, namespace, log, STAYER_RUNNER_DELIVERY="init-copy") as operator:
        yield operator


@pytest.fixture(scope="module")
def copied(copying: OwnOperator) -> Iterator[Run]:
    """A run whose pods copy the runner; begun before the tests that wait for others."""
    run = copying.served.apply(run_manifest([ORACLE], taskset=TASKSET))
    yield run
    run.delete()


@pytest.fixture(scope="module")
def exposed(copying: OwnOperator, copied: Run) -> Iterator[tuple[Run, Audit]]:
    """A run whose pods may reach everything: somebody's policy says so."""
    # Refused attempts need no inventory of their own.
    inventory = TaskKeys(task_digest()).inventory
    until(lambda: read_object(inventory), "the task's inventory", 120, lambda: describe(copied))
    at, name, audit = copying.served, unique_name("exposed"), Audit()
    policy = make_policy(
        at.namespace,
        name,
        podSelector={"matchLabels": {"stayer.dev/run": name}},
        policyTypes=["Egress"],
        egress=[{}],
    )
    at.api.post(policies_path(at.namespace), policy)
    run = at.apply(run_manifest([NOP], name=name, taskset=TASKSET))
    yield run, audit
    run.delete()


class TestWithoutImageVolumes:
    def test_the_operator_probes_what_is_left_to_find_out(self, copying: OwnOperator) -> None:
        [features] = copying.said("features")
        assert (features["runner_delivery"], features["user_namespaces"]) == ("init-copy", True)
        assert features["sources"] == ["setting", "probe"]
        [pod] = copying.probe_pods(SYSTEM)
        assert pod["status"]["phase"] == "Succeeded"
        assert [c["name"] for c in pod["spec"]["initContainers"]] == ["copy-runner"]

    def test_a_trial_works_to_its_scored_end(self, copied: Run, exposed: tuple[Run, Audit]) -> None:
        pods: dict[str, Document] = {}

        def seen(run: Run) -> bool:
            pods.update({pod["metadata"]["name"]: pod for pod in run.pods()})
            return run.status.get("phase") in ("Succeeded", "Failed")

        copied.wait(seen, "its end", 180)

        [trial] = copied.attempts()
        assert phase(trial) == "Succeeded", describe(copied)
        evidence = read_evidence(trial["spec"]["prefix"])
        assert evidence.results.metrics is not None
        assert evidence.results.metrics.resolved is True
        assert evidence.rescored() == evidence.results.metrics
        assert evidence.results.user_namespace != "host"
        assert pods
        for pod in pods.values():
            assert "copy-runner" in [c["name"] for c in pod["spec"]["initContainers"]]
            assert not any("image" in volume for volume in pod["spec"]["volumes"])


class TestWithoutIsolation:
    def test_the_trial_fails_with_that_reason_and_names_the_address(
        self, exposed: tuple[Run, Audit], installed: Installed
    ) -> None:
        run, _ = exposed

        run.wait_for_end(120)

        [trial] = run.attempts()
        assert phase(trial) == "Failed", describe(run)
        assert reason(trial, "Complete") == "IsolationNotEnforced"
        assert api_server(installed.api) in trial["status"]["message"]
        assert run.status["phase"] == "Failed"

    def test_it_is_not_tried_again(self, exposed: tuple[Run, Audit]) -> None:
        run, audit = exposed
        [trial] = run.attempts()
        name = trial["metadata"]["name"]
        assert pods_created(audit, run.at.namespace, run.name) == [f"{name}-a-1", f"{name}-b-1"]
        assert not trial["status"].get("infraRestarts")

    def test_nothing_of_the_agent_ran(self, exposed: tuple[Run, Audit]) -> None:
        run, _ = exposed
        [trial] = run.attempts()
        assert read_object(f"{trial['spec']['prefix']}queue/00000000") is None


class TestWithoutUserNamespaces:
    """The release namespace of this operator is its own, with a Deployment that owns its pods."""

    @pytest.fixture
    def place(self, installed: Installed) -> Iterator[str]:
        with run_namespace(installed.api, unique_name("stayer-none")) as name:
            path = f"/apis/apps/v1/namespaces/{name}/deployments"
            installed.api.post(path, make_deployment("stayer-operator"))
            yield name

    def test_required_is_refused_once_for_all_and_the_answer_is_kept(
        self, installed: Installed, place: str, tmp_path: Path
    ) -> None:
        settings = {
            "STAYER_NAMESPACE": place,
            "STAYER_DEPLOYMENT": "stayer-operator",
            "STAYER_RUNNER_IMAGE": NO_RUNNER,
        }
        with own_operator(installed, place, tmp_path / "first.log", **settings) as operator:
            [features] = operator.said("features")
            assert features["sources"] == ["probe", "probe"]
            assert features["user_namespaces"] is False
            probes = uids(operator.probe_pods(place))
            assert len(probes) == 3
            run = operator.served.apply(run_manifest([NOP], taskset=TASKSET))
            until(
                lambda: condition(run.document() or {}, "Accepted"),
                "a condition",
                30,
                lambda: f"{run.document()}\n{operator.log.read_text()[-5000:]}",
            )
            refused(run)

        # A restarted operator finds the pods and makes none.
        with own_operator(installed, place, tmp_path / "second.log", **settings) as operator:
            assert operator.said("probing") == []
            assert operator.said("features")[0]["message"] == features["message"]
            assert uids(operator.probe_pods(place)) == probes

        # What `helm uninstall` deletes takes them along.
        installed.api.delete(f"/apis/apps/v1/namespaces/{place}/deployments/stayer-operator")
        until(lambda: not operator.probe_pods(place), "probe pods gone", 60)


def refused(run: Run) -> None:
    """Check that the run was told why, and that nothing was made of it."""
    document = run.document() or {}
    assert condition(document, "Accepted") == "False"
    assert reason(document, "Accepted") == "UserNamespaceNotEnforced"
    [accepted] = [c for c in document["status"]["conditions"] if c["type"] == "Accepted"]
    assert "spec.userNamespaces" in accepted["message"]
    assert "preferred or off" in accepted["message"]
    assert run.trials() == []
    assert run.policies() == []
    path = f"/apis/events.k8s.io/v1/namespaces/{run.at.namespace}/events"
    until(
        lambda: any(e["reason"] == "UserNamespaceNotEnforced" for e in run.at.api.list(path)),
        "its event",
        15,
    )


def test_the_installed_operator_found_both_features(installed: Installed) -> None:
    pods = installed.api.list(pods_path(SYSTEM), labelSelector=f"{PROBE_OF}=stayer-operator")
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"]
    [pod] = pods
    assert pod["spec"]["hostUsers"] is False
    assert any("image" in volume for volume in pod["spec"]["volumes"])
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Deployment", "stayer-operator")


def test_probe_pods_fit_the_strictest_pod_security(installed: Installed, namespace: str) -> None:
    pods = installed.api.list(pods_path(SYSTEM), labelSelector=PROBE_OF)
    strict = unique_name("stayer-strict")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.api.post("/api/v1/namespaces", {"metadata": {"name": strict, "labels": labels}})
    try:
        account = f"/api/v1/namespaces/{strict}/serviceaccounts/default"
        until(lambda: installed.api.find(account), "its account", 30)
        assert pods
        for pod in pods:
            spec = {k: v for k, v in pod["spec"].items() if k != "nodeName"}
            manifest = {"metadata": {"name": pod["metadata"]["name"]}, "spec": spec}
            installed.api.call("POST", pods_path(strict), manifest, params={"dryRun": "All"})
    finally:
        installed.api.delete(f"/api/v1/namespaces/{strict}")


def pods_created(audit: Audit, namespace: str, run: str) -> list[str]:
    """Names of pods whose POST was answered 201, in order of name."""
    return sorted(
        entry["objectRef"]["name"]
        for entry in audit.entries()
        if entry["verb"] == "create"
        and (about := entry.get("objectRef") or {}).get("resource") == "pods"
        and "subresource" not in about
        and about.get("namespace") == namespace
        and about.get("name", "").startswith(f"{run}-")
        and entry.get("responseStatus", {}).get("code") == 201
    )


def uids(pods: list[Document]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def make_deployment(name: str) -> Document:
    """One without pods."""
    labels = {"app": name}
    container = {"name": "main", "image": NO_RUNNER}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
