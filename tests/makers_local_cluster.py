"""The running local cluster, as tests see it: by `cluster env`, kubectl and pods of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CLUSTER = Path(__file__).parents[1] / "hack" / "local-cluster" / "cluster"
PATIENCE = 90.0


def wait_until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition, or fail naming what did not happen."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {patience:.0f} s")
        time.sleep(0.2)


@dataclass(frozen=True)
class LocalCluster:
    """The cluster, and one namespace in it that is the tests' own."""

    env: dict[str, str]
    namespace: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of `cluster`."""
        return subprocess.run([CLUSTER, *arguments], capture_output=True, text=True, check=False)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints, in the tests' namespace."""
        program = Path(self.env["STAYER_BIN"]) / "kubectl"
        command = [program, "--namespace", self.namespace, *arguments]
        environ = {**os.environ, "KUBECONFIG": self.env["KUBECONFIG"]}
        result = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environ, check=False
        )
        if check and result.returncode != 0:
            pytest.fail(f"kubectl {' '.join(arguments)}: {result.stderr}")
        return result.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """One object, parsed."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return found

    def kubernetes_minor(self) -> int:
        """The minor version of the API server."""
        return int(json.loads(self.kubectl("get", "--raw=/version"))["minor"])

    def apply(self, manifest: dict[str, Any]) -> None:
        """Create or update one object."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def image(self, name: str) -> str:
        """A base image of the local registry."""
        return f"{self.env['STAYER_REGISTRY']}/base/{name}:12"

    def start_pod(self, name: str, command: list[str], **more: Any) -> str:
        """Start a pod; `labels`, `annotations`, `container` and `spec` add to it."""
        container = {
            "name": "main",
            "image": self.image("debian-python"),
            "command": command,
            **more.get("container", {}),
        }
        spec = {
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            **more.get("spec", {}),
        }
        labels = {"test-pod": name, **more.get("labels", {})}
        metadata = {"name": name, "labels": labels, "annotations": more.get("annotations", {})}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return name

    def phase(self, pod: str) -> str:
        """The pod's phase."""
        return str(self.get("pod", pod)["status"].get("phase"))

    def output_of(self, pod: str) -> str:
        """What a pod wrote, once it has succeeded."""
        wait_until(lambda: self.phase(pod) in ("Succeeded", "Failed"), f"the end of pod {pod}")
        output = self.kubectl("logs", pod)
        assert self.phase(pod) == "Succeeded", output
        return output

    def wait_until_ready(self, pod: str) -> dict[str, Any]:
        """The pod, once it is ready."""
        self.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", f"--timeout={PATIENCE:.0f}s")
        return self.get("pod", pod)
