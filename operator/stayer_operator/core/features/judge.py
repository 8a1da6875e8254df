"""What a probe pod's status says."""

import json
from dataclasses import dataclass

from stayer_operator.core.features.decide import Finding, Outcome
from stayer_operator.core.features.pod import PROBE
from stayer_operator.core.observed import ContainerView, PodView

# Kubelet's words for a container that waits for its image (pkg/kubelet/images/types.go). What is
# wrong with an image that cannot be had says nothing about volumes or users.
_NO_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ErrImageNeverPull",
        "ErrRegistryUnavailable",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_DEADLINE = "DeadlineExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds."""

    node: float = 60  # until a node must take the pod
    image: float = 30  # from then on, for an image that cannot be pulled
    start: int = 45  # for everything else; the kubelet then ends the pod (activeDeadlineSeconds)
    kubelet: float = 30  # beyond that, until the kubelet must have done so


def judge(pod: PodView, now: float, patience: Patience) -> Finding:
    """The finding of one probe pod. `now` in seconds since the epoch."""
    if pod.deletion is not None:
        return Finding(outcome=Outcome.WAITING)
    if pod.phase == "Succeeded":
        return _succeeded(pod)
    if pod.phase == "Failed":
        return _failed(pod, patience)
    return _pending(pod, now, patience)


def _succeeded(pod: PodView) -> Finding:
    container = pod.container(PROBE)
    text = container.end.message if container is not None and container.end else ""
    try:
        own_users = json.loads(text)["userNamespace"]
    except (ValueError, TypeError, KeyError):
        own_users = None
    if not isinstance(own_users, bool):
        return _said(pod, Outcome.UNCLEAR, f"ended without a finding, but with {text[:100]!r}")
    users = "users of its own" if own_users else "the node's users"
    return Finding(outcome=Outcome.RAN, own_users=own_users, message=f"{pod.name} ran with {users}")


def _failed(pod: PodView, patience: Patience) -> Finding:
    if pod.reason == _DEADLINE:
        return _said(pod, Outcome.DID_NOT_RUN, f"did not start within {patience.start} s")
    for container in pod.containers:
        end = container.end
        if not pod.reason and end is not None and end.exit_code != 0:
            said = f"{end.reason} {end.message}".strip()
            text = f"{container.name} ended with exit code {end.exit_code}: {said}"
            return _said(pod, Outcome.DID_NOT_RUN, text)
    return _said(pod, Outcome.LOST, f"was ended: {pod.reason or 'Failed'} {pod.message}".strip())


def _pending(pod: PodView, now: float, patience: Patience) -> Finding:
    scheduled = pod.scheduled_since
    if scheduled is None:
        condition = pod.condition("PodScheduled")
        why = condition.message if condition is not None else "the scheduler has not looked at it"
        if now - pod.created < patience.node:
            return Finding(outcome=Outcome.WAITING)
        return _said(pod, Outcome.UNCLEAR, f"got no node within {patience.node:.0f} s: {why}")
    waiting = next((c for c in pod.containers if c.reason in _NO_IMAGE), None)
    if waiting is not None and now - scheduled >= patience.image:
        return _said(pod, Outcome.UNCLEAR, _no_image(waiting))
    if now - scheduled >= patience.start + patience.kubelet:
        return _said(pod, Outcome.UNCLEAR, f"node {pod.node} neither starts nor ends it")
    return Finding(outcome=Outcome.WAITING)


def _no_image(container: ContainerView) -> str:
    return f"its image cannot be pulled: {container.reason} {container.message}".strip()


def _said(pod: PodView, outcome: Outcome, text: str) -> Finding:
    return Finding(outcome=outcome, message=f"{pod.name} {text}")
