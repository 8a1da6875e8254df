"""Probe pods as the API server shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from makers_operator_shell import FakeApiServer, Key
from stayer_operator.core.features.decide import VOLUME, Variant
from stayer_operator.core.features.pod import PROBE, Question, build_probe_pod

CREATED = 1_800_000_000.0
STAMP = "2027-01-15T08:00:00Z"  # the same moment


def make_question(**changes: Any) -> Question:
    return Question(
        **{
            "namespace": "stayer-system",
            "asker": "stayer-operator",
            "runner_image": "r/runner:1",
            "pull_policy": "IfNotPresent",
            "node_runtimes": ("containerd://2.1.0 v1.37.2 6.18 amd64",),
            "start_seconds": 45,
            **changes,
        }
    )


def make_probe_pod(variant: Variant = VOLUME, **status: Any) -> dict[str, Any]:
    """A pod with a node, whatever else its status says."""
    manifest = build_probe_pod(make_question(), variant, None)
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": STAMP}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": STAMP}
    manifest["spec"]["nodeName"] = "node-1"
    return {**manifest, "status": {"phase": "Pending", "conditions": [scheduled], **status}}


def ended(exit_code: int, message: str = "", reason: str = "") -> list[dict[str, Any]]:
    """containerStatuses of a probe container that is over."""
    end = {"exitCode": exit_code, "message": message, "reason": reason}
    return [{"name": PROBE, "state": {"terminated": end}}]


def waits(reason: str, message: str = "") -> list[dict[str, Any]]:
    """containerStatuses of one that has not started."""
    return [{"name": PROBE, "state": {"waiting": {"reason": reason, "message": message}}}]


def ran(own_users: bool) -> dict[str, Any]:
    """The status that a probe pod comes to where everything works."""
    text = f'{{"version":"1","userNamespace":{str(own_users).lower()}}}'
    return {"phase": "Succeeded", "containerStatuses": ended(0, text, "Completed")}


Answer = dict[str, Any] | web.Response
Kubelet = Callable[[dict[str, Any]], Answer]


@dataclass
class ClusterWithKubelet(FakeApiServer):
    """Answers the POST of a pod with a refusal, or gives the pod the status that it comes to."""

    kubelet: Kubelet = lambda _pod: ran(True)
    posted: list[dict[str, Any]] = field(default_factory=list)

    def _object(self, method: str, key: Key, body: Any) -> web.Response:
        if method != "POST" or key[0] != "pods":
            return super()._object(method, key, body)
        came_to = self.kubelet(body)
        if isinstance(came_to, web.Response):
            return came_to
        self.posted.append(body)
        answer = super()._object(method, key, {**body, "status": came_to})
        raw = self.objects[("pods", key[1], body["metadata"]["name"])]
        raw["metadata"]["creationTimestamp"] = STAMP
        return answer
