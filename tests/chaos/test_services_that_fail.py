"""The object store and the API server away for a while, and a node that is drained."""

from __future__ import annotations

import time

import pytest

from makers_chaos import WORKER, finish, finish_with_evidence, wait_for_snapshots
from makers_cluster import Installed, condition, pods_path, reason, run_manifest
from makers_faults import Audit, cluster
from makers_outcome import Outcome, outcome_of
from makers_taskset import TASKSET

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("alone"),
    pytest.mark.timeout(400, func_only=True),
]

S3_SECONDS = 60


def test_the_object_store_stopped_for_a_minute(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))
    run.wait(lambda run: len(run.attempts()) == 2, "its trials", 60)
    wait_for_snapshots(run, 1)

    cluster("stop", "s3")
    try:
        time.sleep(S3_SECONDS)  # what is tested is the length of the outage
        assert len(run.pods()) == 4, "nobody may give up"
    finally:
        cluster("start", "s3")

    assert finish(run, audit) == [calm, calm]


def test_the_api_server_restarted(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))
    run.wait(lambda run: run.pods("agent"), "an agent pod", 60)

    cluster("restart", "apiserver", "--kill")
    run.wait(lambda run: any(condition(t, "Running") for t in run.attempts()), "a running trial")
    cluster("restart", "apiserver")

    assert finish(run, audit) == [calm, calm]


def test_a_node_cordoned_drained_and_uncordoned(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET, attempts=2))
    run.wait(lambda run: len(run.attempts()) == 2, "its trials", 60)
    wait_for_snapshots(run, 2)
    pods = run.pods()
    [node] = {pod["spec"]["nodeName"] for pod in pods}

    installed.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    try:
        # Of one trial both pods go, of the other only the agent's: its pair is torn.
        torn = run.attempts()[0]["metadata"]["name"]
        for pod in pods:
            if not pod["metadata"]["name"].startswith(f"{torn}-b-"):
                evict(installed, pod["metadata"]["name"])
        run.wait(
            lambda run: (
                sum(reason(pod, "PodScheduled") == "Unschedulable" for pod in run.pods()) >= 3
            ),
            "new pods that find no node",
        )
        run.wait(
            lambda run: (
                [reason(t, "Admitted") for t in run.attempts() if t["metadata"]["name"] == torn]
                == ["PairReleased"]
            ),
            "the torn pair to be released",
            90,
        )
    finally:
        installed.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})

    found = finish_with_evidence(run, audit)
    assert [outcome_of(evidence) for evidence in found] == [calm, calm]
    assert all(evidence.end.episode.infra_restarts == 1 for evidence in found)


def evict(installed: Installed, pod: str) -> None:
    """As `kubectl drain` does it."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": installed.namespace},
    }
    installed.api.post(f"{pods_path(installed.namespace, pod)}/eviction", body)
