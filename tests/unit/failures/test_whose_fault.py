# ruff: noqa: E501 (messages are the kubelet's own)
"""Ends of pods as the kubelet writes them, and who has to answer for each."""

from typing import Any

import pytest

from makers_trial import (
    EPOCH,
    condition,
    make_raw_pod,
    running,
    said,
    terminated,
    waiting,
)
from stayer_evaluator.records.outcomes import FailureMode
from stayer_operator.core import failures
from stayer_operator.core.failures import Cause, Fault
from stayer_operator.core.observed import NodeView
from stayer_operator.core.projection import pod_view

NODE_LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. Container "
    "task was using 1900Mi, request is 256Mi, has larger consumption of memory. "
)


def failed(*statuses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return make_raw_pod(phase="Failed", containers=statuses, **more)


CASES = [
    pytest.param(
        failed(terminated("task", 137, "OOMKilled")),
        Fault.AGENT,
        Cause.OWN_MEMORY_LIMIT,
        id="PID 1 of the task container killed at its own memory limit",
    ),
    pytest.param(
        failed(terminated("task", 0, "OOMKilled")),
        Fault.INFRASTRUCTURE,
        Cause.SIDECAR_FAILED,
        id="OOMKilled with exit code 0 proves nothing",
    ),
    pytest.param(
        failed(
            terminated("task", 137, "OOMKilled", finished=50),
            conditions=[condition("DisruptionTarget", reason="EvictionByEvictionAPI", since=60)],
            deletion=660,
        ),
        Fault.AGENT,
        Cause.OWN_MEMORY_LIMIT,
        id="killed at its own limit before the node was drained",
    ),
    pytest.param(
        failed(
            terminated("task", 137, "OOMKilled", finished=70),
            conditions=[condition("DisruptionTarget", reason="EvictionByEvictionAPI", since=60)],
            deletion=660,
        ),
        Fault.INFRASTRUCTURE,
        Cause.DRAIN,
        id="an OOM event in a pod that was being drained already",
    ),
    pytest.param(
        failed(reason="Evicted", message='Container task exceeded its local ephemeral storage limit "8Gi". '),
        Fault.AGENT,
        Cause.OWN_DISK_LIMIT,
        id="own disk limit, the message names the task container",
    ),
    pytest.param(
        failed(reason="Evicted", message='Usage of EmptyDir volume "workspace" exceeds the limit "8Gi". '),
        Fault.AGENT,
        Cause.OWN_DISK_LIMIT,
        id="own disk limit, the message names the workspace",
    ),
    pytest.param(
        failed(
            reason="Evicted",
            message="Pod ephemeral local storage usage exceeds the total limit of containers 14Gi. ",
        ),
        Fault.AGENT,
        Cause.OWN_DISK_LIMIT,
        id="the sum of the limits, which our sidecar alone cannot reach",
    ),
    pytest.param(
        failed(reason="Evicted", message='Usage of EmptyDir volume "state" exceeds the limit "4Gi". '),
        Fault.INFRASTRUCTURE,
        Cause.SIDECAR_FAILED,
        id="our own volume is full",
    ),
    pytest.param(
        failed(reason="Evicted", message='Container recorder exceeded its local ephemeral storage limit "6Gi". '),
        Fault.INFRASTRUCTURE,
        Cause.SIDECAR_FAILED,
        id="our own container is over its disk limit",
    ),
    pytest.param(
        failed(
            terminated("task", 137),
            reason="Evicted",
            message=NODE_LOW,
            conditions=[condition("DisruptionTarget", reason="TerminationByKubelet", message=NODE_LOW)],
        ),
        Fault.INFRASTRUCTURE,
        Cause.NODE_PRESSURE,
        id="evicted because the node ran low",
    ),
    pytest.param(
        failed(reason="Evicted", message=NODE_LOW),
        Fault.INFRASTRUCTURE,
        Cause.NODE_PRESSURE,
        id="evicted because the node ran low, without a condition",
    ),
    pytest.param(
        failed(
            terminated("task", 143),
            deletion=700,
            conditions=[condition("DisruptionTarget", reason="PreemptionByScheduler")],
        ),
        Fault.INFRASTRUCTURE,
        Cause.PREEMPTION,
        id="preempted by the scheduler",
    ),
    pytest.param(
        failed(reason="Preempting", message="Preempted in order to admit critical pod"),
        Fault.INFRASTRUCTURE,
        Cause.PREEMPTION,
        id="preempted by the kubelet",
    ),
    pytest.param(
        make_raw_pod(
            containers=[running("task")],
            deletion=700,
            conditions=[condition("DisruptionTarget", reason="DeletionByTaintManager")],
        ),
        Fault.INFRASTRUCTURE,
        Cause.NODE_LOST,
        id="deleted because its node is tainted",
    ),
    pytest.param(
        failed(
            terminated("task", 137),
            reason="Terminated",
            message="Pod was terminated in response to imminent node shutdown.",
            conditions=[condition("DisruptionTarget", reason="TerminationByKubelet")],
        ),
        Fault.INFRASTRUCTURE,
        Cause.NODE_SHUTDOWN,
        id="graceful shutdown of the node",
    ),
    pytest.param(
        failed(reason="Shutdown", message="Node is shutting down, evicting pods"),
        Fault.INFRASTRUCTURE,
        Cause.NODE_SHUTDOWN,
        id="shutdown as older kubelets say it",
    ),
    pytest.param(
        failed(reason="NodeLost", message="Node node-1 which was running pod is unresponsive"),
        Fault.INFRASTRUCTURE,
        Cause.NODE_LOST,
        id="the node controller calls the node lost",
    ),
    pytest.param(
        failed(reason="OutOfcpu", message="Node didn't have enough resource: cpu"),
        Fault.INFRASTRUCTURE,
        Cause.KUBELET_REFUSED,
        id="the kubelet had no room for it",
    ),
    pytest.param(
        failed(
            terminated("task", 137, "ContainerStatusUnknown", message="The container could not be located"),
        ),
        Fault.INFRASTRUCTURE,
        Cause.NODE_LOST,
        id="the kubelet could not find the container after a restart",
    ),
    pytest.param(
        failed(terminated("task", 255, "Unknown")),
        Fault.INFRASTRUCTURE,
        Cause.NODE_LOST,
        id="the runtime could not find the container after a restart",
    ),
    pytest.param(
        failed(terminated("task", 143), deletion=700),
        Fault.USER,
        Cause.DELETED,
        id="somebody deleted the pod",
    ),
    pytest.param(
        failed(terminated("task", 137, finished=50), deletion=700, grace=600),
        Fault.AGENT,
        Cause.TASK_KILLED,
        id="somebody deleted the pod after its task container had died",
    ),
    pytest.param(
        failed(waiting("task", "PodInitializing"), inits=[terminated("seed", 1, message="no space left")]),
        Fault.INFRASTRUCTURE,
        Cause.START_FAILED,
        id="seeding failed",
    ),
    pytest.param(
        failed(terminated("task", 128, "StartError", message="exec /stayer/bin/runner: no such file")),
        Fault.INFRASTRUCTURE,
        Cause.START_FAILED,
        id="the task container could not be started",
    ),
    pytest.param(
        failed(terminated("task", 137)),
        Fault.AGENT,
        Cause.TASK_KILLED,
        id="killed, and nobody says why",
    ),
    pytest.param(
        failed(terminated("task", 2)),
        Fault.AGENT,
        Cause.TASK_KILLED,
        id="the runner crashed, which a process that starves it can bring about",
    ),
    pytest.param(
        failed(terminated("task", 143)),
        Fault.INFRASTRUCTURE,
        Cause.STOPPED,
        id="stopped by a SIGTERM that only kubelet and runtime can send",
    ),
    pytest.param(
        failed(
            terminated("task", 1, finished=100),
            inits=[terminated("recorder", 1, message=said("error", message="lost the FIFO"), finished=90)],
        ),
        Fault.INFRASTRUCTURE,
        Cause.SIDECAR_FAILED,
        id="our sidecar failed first",
    ),
    pytest.param(
        failed(
            terminated("task", 137, finished=90),
            inits=[terminated("recorder", 1, message=said("error"), finished=90)],
        ),
        Fault.AGENT,
        Cause.TASK_KILLED,
        id="the task container was killed and took the sidecar along",
    ),
    pytest.param(
        failed(
            terminated("task", 1),
            inits=[terminated("recorder", 3, message=said("fenced"), finished=90)],
        ),
        Fault.INFRASTRUCTURE,
        Cause.FENCED,
        id="the sidecar was fenced",
    ),
    pytest.param(
        failed(terminated("task", 1), inits=[terminated("recorder", 5, finished=90)]),
        Fault.INFRASTRUCTURE,
        Cause.STORE_UNREACHABLE,
        id="the sidecar could not reach the store",
    ),
    pytest.param(
        make_raw_pod(phase="Pending", conditions=[], node=""),
        Fault.INFRASTRUCTURE,
        Cause.VANISHED,
        id="gone without any sign",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "fault", "cause"), CASES)
def test_end_is_somebodys(raw: dict[str, Any], fault: Fault, cause: Cause) -> None:
    end = failures.classify_end(pod_view(raw))

    assert (end.fault, end.cause) == (fault, cause)
    assert (end.failure_mode is not None) == (fault is Fault.AGENT)
    assert end.message


@pytest.mark.parametrize(
    ("cause", "mode"),
    [
        (Cause.OWN_MEMORY_LIMIT, FailureMode.AGENT_OOM),
        (Cause.OWN_DISK_LIMIT, FailureMode.AGENT_DISK),
        (Cause.TASK_KILLED, FailureMode.AGENT_KILLED),
    ],
)
def test_agent_fault_has_its_failure_mode(cause: Cause, mode: FailureMode) -> None:
    ends = [failures.classify_end(pod_view(case.values[0])) for case in CASES]

    assert {end.failure_mode for end in ends if end.cause is cause} == {mode}


def test_deletion_on_a_silent_node_is_the_nodes() -> None:
    node = NodeView(name="node-1", uid="n", resource_version="1", ready=False, since=EPOCH)

    end = failures.classify_end(pod_view(make_raw_pod(deletion=600)), node)

    assert end.cause is Cause.NODE_LOST


@pytest.mark.parametrize(
    ("deletion", "ready", "silent_since", "now", "lost"),
    [
        pytest.param(600, False, 0, 660, True, id="silent for a minute past the grace"),
        pytest.param(600, False, 0, 659, False, id="not yet a minute past the grace"),
        pytest.param(600, False, 620, 679, False, id="the node fell silent after the grace"),
        pytest.param(600, True, 0, 9999, False, id="the node is ready: the kubelet will tell"),
        pytest.param(None, False, 0, 9999, False, id="nobody asked the pod to end"),
    ],
)
def test_pod_is_lost_when_nobody_will_report_its_end(
    deletion: float | None, ready: bool, silent_since: float, now: float, lost: bool
) -> None:
    pod = pod_view(make_raw_pod(deletion=deletion, containers=[running("task")]))
    node = NodeView(
        name="node-1", uid="n", resource_version="1", ready=ready, since=EPOCH + silent_since
    )

    assert failures.is_lost(pod, node, EPOCH + now, 60) is lost
