"""The probe pod: the runner, mounted as trial pods would have it, says where it finds itself.

It fits Pod Security's `restricted`, so that any release namespace takes it, and has no rights, no
token and nothing to read. Its name is a function of what the answer depends on: a finished one is
the answer of every later start.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stayer_evaluator.records import places
from stayer_operator.api import names
from stayer_operator.core.features.decide import Variant

PROBE = "probe"  # the container
COPY = "copy-runner"
VOLUME = "runner"

LABEL_PROBE_OF = f"{names.GROUP}/probe-of"  # whose probe pod it is

_USER = 65532  # "nonroot", as our other pods
_RESOURCES = {
    "requests": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"},
    "limits": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The operator's Deployment: what it owns goes with it."""

    name: str
    uid: str
    pull_secrets: tuple[str, ...] = ()  # of its own pods; the runner's image is beside theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that the answer depends on, and whose question it is."""

    namespace: str
    asker: str  # the installation: name of the operator's Deployment, else of its Lease
    runner_image: str
    pull_policy: str
    node_runtimes: tuple[str, ...]  # every kind of node there is
    start_seconds: int  # until the kubelet ends a pod that does not start

    @property
    def key(self) -> str:
        """Ten hex digits; another question has another key."""
        return names.digest10(
            self.runner_image, self.pull_policy, self.start_seconds, *self.node_runtimes
        )

    @property
    def selector(self) -> str:
        """Label selector of this asker's probe pods, of earlier questions too."""
        return f"{LABEL_PROBE_OF}={names.label_value(self.asker)}"

    def pod_name(self, variant: Variant) -> str:
        """Name of a variant's pod."""
        return f"{self.asker[:27].rstrip('-')}-probe-{self.key}-{_suffix(variant)}"


def node_runtimes(found: Iterable[str]) -> tuple[str, ...]:
    """The kinds of nodes that a probe pod may come to, each once, in order."""
    return tuple(sorted({runtime for runtime in found if runtime}))


def build_probe_pod(question: Question, variant: Variant, owner: Owner | None) -> dict[str, Any]:
    """Manifest of a variant's pod. Without an owner it is nobody's, and stays."""
    copied = variant.delivery == "init-copy"
    metadata: dict[str, Any] = {
        "namespace": question.namespace,
        "name": question.pod_name(variant),
        "labels": {
            names.LABEL_APP: names.APP,
            names.LABEL_MANAGED_BY: names.APP,
            names.LABEL_COMPONENT: names.COMPONENT_PROBE,
            LABEL_PROBE_OF: names.label_value(question.asker),
        },
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": question.start_seconds,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [_volume(question, copied)],
        "initContainers": [_copy(question)] if copied else [],
        "containers": [_container(question, PROBE, [places.RUNNER, "probe"], read_only=True)],
    }
    if variant.own_users:
        spec["hostUsers"] = False
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
        spec["imagePullSecrets"] = [{"name": name} for name in owner.pull_secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _suffix(variant: Variant) -> str:
    kind = "volume" if variant.delivery == "image-volume" else "copy"
    return kind if variant.own_users else f"{kind}-host-users"


def _volume(question: Question, copied: bool) -> dict[str, Any]:
    if copied:
        return {"name": VOLUME, "emptyDir": {"sizeLimit": "64Mi"}}
    image = {"reference": question.runner_image, "pullPolicy": question.pull_policy}
    return {"name": VOLUME, "image": image}


def _copy(question: Question) -> dict[str, Any]:
    return _container(question, COPY, ["/runner", "copy-self", places.BIN], read_only=False)


def _container(
    question: Question, name: str, command: list[str], *, read_only: bool
) -> dict[str, Any]:
    """Its own image is the runner's too: nothing else has to be pulled."""
    return {
        "name": name,
        "image": question.runner_image,
        "imagePullPolicy": question.pull_policy,
        "command": command,
        "workingDir": "/",
        "resources": _RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": VOLUME, "mountPath": places.BIN, "readOnly": read_only}],
    }


def _reference(owner: Owner) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
