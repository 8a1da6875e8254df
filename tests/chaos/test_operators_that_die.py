"""The operator SIGKILLed again and again, frozen past its lease, and joined by a second one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from makers_chaos import WORKER, finish
from makers_cluster import (
    SYSTEM,
    Api,
    Document,
    Installed,
    describe,
    phase,
    pods_path,
    run_manifest,
    until,
)
from makers_faults import Audit, find_process, gone, operator_writes, send
from makers_outcome import Outcome
from makers_taskset import TASKSET

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("alone"),
    pytest.mark.timeout(400, func_only=True),
]

OPERATOR = "stayer_operator"
KILLS = 10
SECOND = "stayer-operator-second"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}"


def test_an_operator_killed_ten_times_at_its_writes(installed: Installed, calm: Outcome) -> None:
    audit, writes = Audit(), Audit()
    # One after the other: while it is down, whatever runs at the same time would need no write.
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=3, parallelism=1))

    killed = 0
    while killed < KILLS:
        until(
            lambda: any(map(operator_writes, writes.fresh())),
            f"a write of the operator after {killed} kills",
            60,
            lambda: describe(run),
            pause=0.01,
        )
        [pod] = installed.operators()
        pid = send(pod, OPERATOR, signal.SIGKILL)
        if pid is not None:
            assert gone(pid)
            killed += 1
            writes.fresh()  # what it still did before it died

    assert finish(run, audit) == [calm, calm, calm]


def test_a_frozen_leader_wakes_up_beside_its_successor(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    [leader] = installed.operators()
    with scaled(installed, 2):
        run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2, parallelism=1))
        run.wait(lambda run: run.pods("agent"), "an agent pod", 60)
        pid = send(leader, OPERATOR, signal.SIGSTOP)
        assert pid is not None
        try:
            # Its lease runs out after 15 s; the kubelet's patience with /healthz is longer.
            until(
                lambda: holder(installed) not in ("", leader["metadata"]["uid"]),
                "another leader",
                40,
            )
            run.wait(
                lambda run: (
                    any(phase(trial) == "Draining" for trial in run.attempts())
                    or any(phase(trial) == "Succeeded" for trial in run.attempts())
                ),
                "work of the new leader",
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        assert gone(pid, 60), "a leader without its lease must end"

        assert finish(run, audit) == [calm, calm]


def test_two_operators_that_both_lead(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    with second_operator(installed):
        run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))

        outcomes = finish(run, audit)

    assert outcomes == [calm, calm]
    assert any(map(operator_writes, audit.entries())), "the installed operator did nothing"


def holder(installed: Installed) -> str:
    """Who has the lease."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/stayer-operator"
    lease = installed.api.find(path) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


@contextmanager
def scaled(installed: Installed, replicas: int) -> Iterator[None]:
    """The operator's deployment with more pods, all of them running."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/stayer-operator/scale"
    installed.api.merge(path, {"spec": {"replicas": replicas}})
    try:
        until(
            lambda: (
                sum(find_process(pod, OPERATOR) is not None for pod in installed.operators())
                == replicas
            ),
            "another operator",
            60,
        )
        yield
    finally:
        installed.api.merge(path, {"spec": {"replicas": 1}})


@contextmanager
def second_operator(installed: Installed) -> Iterator[None]:
    """Another pod of the installed operator that leads by a lease of its own."""
    api = installed.api
    _remove_second(api)
    try:
        for kind, body in _lease_rights().items():
            api.post(f"{RBAC}/{kind}", body)
        api.post(pods_path(SYSTEM), _second_pod(installed))
        until(
            lambda: '"event":"ready"' in installed.log(SYSTEM, SECOND, "operator", 500),
            "a second operator that is ready",
            60,
            lambda: installed.log(SYSTEM, SECOND, "operator", 20),
        )
        yield
        said = installed.log(SYSTEM, SECOND, "operator", 5000)
        assert '"event":"applied"' in said, "the second operator did nothing"
        pod = api.find(pods_path(SYSTEM, SECOND))
        assert pod is not None
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0, said[-3000:]
    finally:
        _remove_second(api)


def _second_pod(installed: Installed) -> Document:
    """As the Deployment makes it, but unknown to Deployment and Service."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/stayer-operator"
    deployment = installed.api.find(path)
    assert deployment is not None
    spec = deployment["spec"]["template"]["spec"]
    for variable in spec["containers"][0]["env"]:
        if variable["name"] == "STAYER_LEASE_NAME":
            variable["value"] = SECOND
    metadata = {"name": SECOND, "labels": {"app": SECOND}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _lease_rights() -> dict[str, Document]:
    """The operator's account may use its own Lease only; here a second one, too."""
    group = "coordination.k8s.io"
    rule = {"apiGroups": [group], "resources": ["leases"], "resourceNames": [SECOND]}
    account = {"kind": "ServiceAccount", "name": "stayer-operator", "namespace": SYSTEM}
    return {
        "roles": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": SECOND},
            "rules": [{**rule, "verbs": ["get", "update"]}],
        },
        "rolebindings": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": SECOND},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": SECOND},
            "subjects": [account],
        },
    }


def _remove_second(api: Api) -> None:
    api.delete(pods_path(SYSTEM, SECOND), 0)
    for kind in ("roles", "rolebindings"):
        api.delete(f"{RBAC}/{kind}/{SECOND}")
    api.delete(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{SECOND}")
    until(lambda: api.find(pods_path(SYSTEM, SECOND)) is None, "no second operator", 60)
