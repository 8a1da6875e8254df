"""Whose fault the end of a pod was, by evidence (design.md §3, "Whose fault").

What a workspace can bring about by itself must never earn it another try, so the burden lies with
infrastructure: only what the control plane, the kubelet or our own sidecar says excuses an end.
A task container that died without any such word died by what ran in it.

Facts that the order below rests on, read in the sources of Kubernetes 1.34 and containerd 2:

    OOMKilled    set on any OOM event in the container, never cleared, also with exit code 0: it
                 proves something only together with 137, the SIGKILL of PID 1
    Evicted      for an own disk limit: no DisruptionTarget, and a message that names container or
                 volume; for node pressure: DisruptionTarget, reason TerminationByKubelet
    255 Unknown  containerd found the container dead after it or the node had restarted
    PID 1        is the runner, as root; the agent's user cannot signal it, and SIGKILL from
                 inside a PID namespace does not reach its PID 1
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from stayer_evaluator.records.exits import FENCED, STORE_UNREACHABLE
from stayer_evaluator.records.outcomes import FailureMode
from stayer_operator.core.observed import ContainerEnd, NodeView, PodView
from stayer_operator.core.pods.containers import SIDECARS, TASK
from stayer_operator.core.pods.volumes import FILLED_BY_TASK
from stayer_operator.core.sidecars import sidecar_message, sidecar_of

SIGKILLED = 137
SIGTERMED = 143


class Fault(StrEnum):
    """Who has to answer for an end."""

    AGENT = "agent"
    INFRASTRUCTURE = "infrastructure"
    USER = "user"  # somebody deleted the pod; treated like infrastructure, counted apart


class Cause(StrEnum):
    """What happened; a closed vocabulary for metrics and messages."""

    OWN_MEMORY_LIMIT = "own_memory_limit"
    OWN_DISK_LIMIT = "own_disk_limit"
    TASK_KILLED = "task_killed"
    DRAIN = "drain"  # Eviction API
    PREEMPTION = "preemption"
    NODE_PRESSURE = "node_pressure"
    NODE_LOST = "node_lost"
    NODE_SHUTDOWN = "node_shutdown"
    KUBELET_REFUSED = "kubelet_refused"
    DELETED = "deleted"
    VANISHED = "vanished"  # gone, and nobody saw how
    START_FAILED = "start_failed"  # image pull, seeding, a container that cannot be started
    SIDECAR_FAILED = "sidecar_failed"
    STORE_UNREACHABLE = "store_unreachable"
    FENCED = "fenced"
    STUCK = "stuck"  # past its backstop deadline
    STOPPED = "stopped"  # a SIGTERM that nobody explains


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """Judgement on a pod that is over. `failure_mode` only where the agent is at fault."""

    fault: Fault
    cause: Cause
    message: str
    failure_mode: FailureMode | None = None


def is_lost(pod: PodView, node: NodeView | None, now: float, seconds: float) -> bool:
    """Being deleted, and its node silent for `seconds` past the grace: nobody will ever report
    its end. The object is left to the node controller; the queue's fence protects the evidence.
    """
    if pod.deletion is None or pod.is_terminal or node is None or node.ready:
        return False
    return now >= max(pod.deletion, node.since) + seconds


def start_trouble(pod: PodView) -> str | None:
    """Why a pod that has a node does not run: the waiting reason of a container, with its words."""
    for container in pod.containers:
        if container.state == "waiting" and container.reason in _START_TROUBLE:
            return f"{container.name}: {container.reason}: {container.message}".rstrip(": ")
    return None


_START_TROUBLE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)


def broken_sidecar(pod: PodView, restarts: int) -> PodEnd | None:
    """The sidecar of a pod that still lives is beyond repair: it is fenced, or it came back more
    than `restarts` times. The kubelet would go on restarting it for ever.
    """
    sidecar = sidecar_of(pod)
    if sidecar is None or not sidecar.ends:
        return None
    code = sidecar.ends[0].exit_code
    if code != FENCED and sidecar.restarts <= restarts:
        return None
    return _sidecar_end(pod) or _infrastructure(
        Cause.SIDECAR_FAILED, f"{sidecar.name} was restarted {sidecar.restarts} times"
    )


def classify_end(pod: PodView, node: NodeView | None = None) -> PodEnd:
    """Judge a pod that is over: terminal, lost, or gone (then as it was last seen)."""
    own = _own_end(pod)
    killed = _killed_task(pod)
    blame = own or (killed if killed and killed.fault is Fault.AGENT else None)
    if blame is not None and _came_first(pod):
        return blame
    return (
        _disruption(pod)
        or _eviction(pod)
        or _kubelet_word(pod)
        or _deletion(pod, node)
        or _lost_containers(pod)
        or _failed_start(pod)
        or own
        or _sidecar_end(pod)
        or killed
        or _infrastructure(Cause.VANISHED, "it ended without any sign")
    )


def _infrastructure(cause: Cause, message: str) -> PodEnd:
    return PodEnd(fault=Fault.INFRASTRUCTURE, cause=cause, message=message)


def _own_end(pod: PodView) -> PodEnd | None:
    """The task container died of its own memory limit."""
    end = _task_end(pod)
    if end is None or end.reason != "OOMKilled" or end.exit_code != SIGKILLED:
        return None
    return PodEnd(
        fault=Fault.AGENT,
        cause=Cause.OWN_MEMORY_LIMIT,
        failure_mode=FailureMode.AGENT_OOM,
        message="the task container was killed at its own memory limit",
    )


def _came_first(pod: PodView) -> bool:
    """The task container ended before anybody asked the pod to end."""
    end = _task_end(pod)
    if end is None or end.finished is None:
        return False
    asked = []
    if (disruption := _disruption_condition(pod)) is not None:
        asked.append(disruption)
    if pod.deletion is not None:
        asked.append(pod.deletion - (pod.deletion_grace or 0))
    return bool(asked) and end.finished < min(asked)


def _task_end(pod: PodView) -> ContainerEnd | None:
    task = pod.container(TASK)
    return task.end if task else None


def _disruption_condition(pod: PodView) -> float | None:
    condition = pod.condition("DisruptionTarget")
    return condition.since if condition and condition.status == "True" else None


_DISRUPTIONS = {
    "PreemptionByScheduler": Cause.PREEMPTION,
    "EvictionByEvictionAPI": Cause.DRAIN,
    "DeletionByTaintManager": Cause.NODE_LOST,
    "DeletionByPodGC": Cause.NODE_LOST,
    "TerminationByKubelet": Cause.NODE_PRESSURE,
}


def _disruption(pod: PodView) -> PodEnd | None:
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True":
        return None
    cause = _DISRUPTIONS.get(condition.reason, Cause.DRAIN)
    if cause is Cause.NODE_PRESSURE and pod.reason != "Evicted":
        cause = _KUBELET_WORDS.get(pod.reason, Cause.NODE_PRESSURE)
    return _infrastructure(cause, condition.message or condition.reason)


_CONTAINER_LIMIT = re.compile(r"^Container (\S+) exceeded its local ephemeral storage limit")
_VOLUME_LIMIT = re.compile(r'^Usage of EmptyDir volume "([^"]+)" exceeds the limit')
_POD_LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers"


def _eviction(pod: PodView) -> PodEnd | None:
    if pod.reason != "Evicted":
        return None
    if _filled_by_task(pod.message):
        return PodEnd(
            fault=Fault.AGENT,
            cause=Cause.OWN_DISK_LIMIT,
            failure_mode=FailureMode.AGENT_DISK,
            message=pod.message.strip(),
        )
    ours = _CONTAINER_LIMIT.match(pod.message) or _VOLUME_LIMIT.match(pod.message)
    cause = Cause.SIDECAR_FAILED if ours else Cause.NODE_PRESSURE
    return _infrastructure(cause, pod.message.strip())


def _filled_by_task(message: str) -> bool:
    if container := _CONTAINER_LIMIT.match(message):
        return container[1] == TASK
    if volume := _VOLUME_LIMIT.match(message):
        return volume[1] in FILLED_BY_TASK
    # The sidecar's volumes together stay below its own share of the sum (pods/settings.py), so a
    # pod beyond the sum is there by what the task container wrote.
    return message.startswith(_POD_LIMIT)


_KUBELET_WORDS = {
    "NodeLost": Cause.NODE_LOST,
    "Shutdown": Cause.NODE_SHUTDOWN,
    "NodeShutdown": Cause.NODE_SHUTDOWN,
    "Terminated": Cause.NODE_SHUTDOWN,
    "Preempting": Cause.PREEMPTION,
    "Preempted": Cause.PREEMPTION,
    "NodeAffinity": Cause.KUBELET_REFUSED,
    "NodePorts": Cause.KUBELET_REFUSED,
    "UnexpectedAdmissionError": Cause.KUBELET_REFUSED,
    "TopologyAffinityError": Cause.KUBELET_REFUSED,
    "InvalidNodeInfo": Cause.KUBELET_REFUSED,
    "PodOSNotSupported": Cause.KUBELET_REFUSED,
    "PodFeatureUnsupported": Cause.KUBELET_REFUSED,
    "DeadlineExceeded": Cause.STUCK,
}


def _kubelet_word(pod: PodView) -> PodEnd | None:
    cause = _KUBELET_WORDS.get(pod.reason)
    if cause is None and pod.reason.startswith("OutOf"):  # OutOfcpu, OutOfmemory, OutOfpods, ...
        cause = Cause.KUBELET_REFUSED
    return _infrastructure(cause, pod.message or pod.reason) if cause else None


def _deletion(pod: PodView, node: NodeView | None) -> PodEnd | None:
    if pod.deletion is None:
        return None
    if node is not None and not node.ready:
        return _infrastructure(Cause.NODE_LOST, f"node {node.name} is not ready")
    return PodEnd(fault=Fault.USER, cause=Cause.DELETED, message="the pod was deleted")


def _lost_containers(pod: PodView) -> PodEnd | None:
    """The runtime came back and did not know the container any more."""
    for container in pod.containers:
        end = container.end
        if end and (end.reason == "ContainerStatusUnknown" or _died_with_runtime(end)):
            return _infrastructure(
                Cause.NODE_LOST, f"{container.name}: its node or runtime was restarted"
            )
    return None


def _died_with_runtime(end: ContainerEnd) -> bool:
    return end.reason == "Unknown" and end.exit_code == 255


def _failed_start(pod: PodView) -> PodEnd | None:
    """An init container failed, or a container could not be started at all."""
    for container in pod.containers:
        end = container.end
        if end is None or container.name in SIDECARS:
            continue
        failed_init = container.init and end.exit_code != 0
        if failed_init or end.reason in ("StartError", "ContainerCannotRun"):
            words = end.message.strip() or end.reason
            return _infrastructure(
                Cause.START_FAILED, f"{container.name}: exit code {end.exit_code}: {words}"
            )
    return None


def _sidecar_end(pod: PodView) -> PodEnd | None:
    """Our sidecar failed before the task container ended."""
    sidecar, task = sidecar_of(pod), _task_end(pod)
    failed = [end for end in sidecar.ends if _failed_by_itself(end)] if sidecar else []
    if not failed or (task is not None and _ended_before(task, failed[-1])):
        return None
    message = sidecar_message(pod, "error", "fenced")
    said = message.message if message and message.message else f"exit code {failed[0].exit_code}"
    causes = {FENCED: Cause.FENCED, STORE_UNREACHABLE: Cause.STORE_UNREACHABLE}
    cause = causes.get(failed[0].exit_code, Cause.SIDECAR_FAILED)
    return _infrastructure(cause, f"{sidecar.name if sidecar else ''}: {said}")


def _failed_by_itself(end: ContainerEnd) -> bool:
    """Not merely stopped with its pod (143, 137 when it took too long)."""
    return 0 < end.exit_code < 128 or (end.exit_code == SIGKILLED and end.reason == "OOMKilled")


def _ended_before(first: ContainerEnd, second: ContainerEnd) -> bool:
    """Times are whole seconds; a tie goes to what was killed, as our sidecar never kills."""
    if first.finished is None or second.finished is None:
        return False
    if first.finished == second.finished:
        return first.exit_code > 128
    return first.finished < second.finished


def _killed_task(pod: PodView) -> PodEnd | None:
    """The task container is dead and nobody excuses it."""
    end = _task_end(pod)
    if end is None:
        return None
    if end.exit_code == 0:
        return _infrastructure(Cause.SIDECAR_FAILED, "the sidecar ended the pod without a message")
    if end.exit_code == SIGTERMED:
        # Only kubelet and runtime can send it to PID 1, and the runner exits by it on purpose.
        return _infrastructure(Cause.STOPPED, "the task container was stopped from outside")
    return PodEnd(
        fault=Fault.AGENT,
        cause=Cause.TASK_KILLED,
        failure_mode=FailureMode.AGENT_KILLED,
        message=f"the task container ended with exit code {end.exit_code} and nobody stopped it",
    )
