"""The operator SIGKILLed again and again, frozen past its lease, and joined by a second one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from makers_chaos import WORKER, finish
from makers_cluster import SYSTEM, Installed, describe, phase, run_manifest, until
from makers_faults import Audit, find_process, free_port, gone, operator_writes, send
from makers_outcome import Outcome
from makers_taskset import TASKSET

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("alone")]

OPERATOR = "stayer_operator"
KILLS = 10


def test_an_operator_killed_ten_times_at_its_writes(installed: Installed, calm: Outcome) -> None:
    audit, writes = Audit(), Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))

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

    assert finish(run, audit) == [calm, calm]


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


def test_two_operators_that_both_lead(installed: Installed, calm: Outcome, tmp_path: Path) -> None:
    audit = Audit()
    with second_operator(installed, tmp_path / "operator.log"):
        run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))

        outcomes = finish(run, audit)

    assert outcomes == [calm, calm]
    assert any(map(operator_writes, audit.entries())), "the installed operator did nothing"


def holder(installed: Installed) -> str:
    """Who has the lease."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/stayer-operator"
    lease = installed.api.find(path) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def api_server(installed: Installed) -> str:
    """What a pod of the operator finds in its environment."""
    service = installed.api.find("/api/v1/namespaces/default/services/kubernetes")
    assert service is not None
    return f"{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"


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
def second_operator(installed: Installed, log: Path) -> Iterator[None]:
    """A bare process of the operator on this machine that leads by a lease of its own."""
    [pod] = installed.operators()
    [container] = pod["spec"]["containers"]
    given = {e["name"]: e["value"] for e in container["env"] if "value" in e}
    env = {
        **os.environ,
        **given,
        "STAYER_LEASE_NAME": "stayer-operator-second",
        "STAYER_MUST_FAIL": api_server(installed),
        "POD_NAME": "stayer-operator-second",
        "STAYER_METRICS_PORT": str(free_port()),
        "STAYER_PROGRESS_PORT": str(free_port()),
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "stayer_operator"], env=env, stdout=stream, stderr=stream
        )
    try:
        until(
            lambda: '"event": "ready"' in log.read_text(),
            "a second operator that is ready",
            60,
            lambda: log.read_text()[-3000:],
        )
        yield
        assert process.poll() is None, log.read_text()[-3000:]
        assert '"event": "applied"' in log.read_text(), "the second operator did nothing"
    finally:
        process.terminate()
        process.wait(30)
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/stayer-operator-second"
        installed.api.delete(path)
