"""The installed product on the cluster of the environment: task sets, runs, what became of them.

Conditions are awaited with a bound; whoever waits in vain is told conditions, pods, events and the
last lines of the logs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from stayer_evaluator.storage.store import StoreError
from stayer_operator.adapters.connection import find_connection

Document = dict[str, Any]

SYSTEM = os.environ.get("STAYER_NAMESPACE", "stayer-system")
RUNS = os.environ.get("STAYER_RUN_NAMESPACE", "stayer-runs")
GROUP = "/apis/stayer.dev/v1alpha1"
ENDED = ("Succeeded", "Failed", "Cancelled")
LOG_LINES = 12


class ApiError(Exception):
    """The API server refused."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"{answer.request.method} {answer.request.url.path}: {answer.text[:500]}")
        self.status = answer.status_code


class Api:
    """JSON calls as the administrator. Raises ApiError, httpx.TransportError."""

    def __init__(self) -> None:
        env = dict(os.environ)
        if "STAYER_KUBECONFIG" in env:
            env["KUBECONFIG"] = env["STAYER_KUBECONFIG"]
        found = find_connection(env)
        self._http = httpx.Client(
            base_url=found.server,
            verify=found.tls if found.tls is not None else True,
            headers=found.headers(),
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def call(
        self, method: str, path: str, body: Document | None = None, **more: Any
    ) -> httpx.Response:
        """Any request. Raises ApiError for 4xx and 5xx."""
        answer = self._http.request(method, path, json=body, **more)
        if answer.is_error:
            raise ApiError(answer)
        return answer

    def find(self, path: str) -> Document | None:
        """One object; None when it is not there."""
        try:
            found: Document = self.call("GET", path).json()
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def list(self, path: str, **query: str) -> list[Document]:
        """The items of a list; `labelSelector` and `fieldSelector` choose."""
        return list(self.call("GET", path, params=query).json().get("items") or ())

    def post(self, path: str, body: Document) -> Document:
        """Create."""
        made: Document = self.call("POST", path, body).json()
        return made

    def merge(self, path: str, body: Document) -> Document:
        """Merge-patch."""
        headers = {"Content-Type": "application/merge-patch+json"}
        changed: Document = self.call("PATCH", path, body, headers=headers).json()
        return changed

    def delete(self, path: str, grace: int | None = None) -> None:
        """Delete in the background; what is gone already is fine."""
        body: Document = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        with contextlib.suppress(ApiError):
            self.call("DELETE", path, body)


def pods_path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


@dataclass(frozen=True)
class Installed:
    """The product as it is installed."""

    api: Api
    namespace: str = RUNS

    def path(self, plural: str, name: str = "") -> str:
        """Of our own kinds."""
        base = f"{GROUP}/namespaces/{self.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    def operators(self) -> list[Document]:
        """Pods of the operator that are not being deleted."""
        selector = "app.kubernetes.io/name=stayer,app.kubernetes.io/component=operator"
        found = self.api.list(pods_path(SYSTEM), labelSelector=selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def is_calm(self) -> bool:
        """One operator, and it is Ready."""
        return [condition(pod, "Ready") for pod in self.operators()] == ["True"]

    def apply(self, manifest: Document) -> Run:
        """Create a run."""
        made = self.api.post(self.path("benchmarkruns"), manifest)
        return Run(self, made["metadata"]["name"], made["metadata"]["uid"])

    def log(self, namespace: str, pod: str, container: str, lines: int = LOG_LINES) -> str:
        """Last lines of a container's log, or why there are none."""
        try:
            query = {"container": container, "tailLines": str(lines)}
            return self.api.call("GET", f"{pods_path(namespace, pod)}/log", params=query).text
        except (ApiError, httpx.TransportError) as error:
            return f"({error})"


@dataclass(frozen=True)
class Run:
    """One applied run. Another of the same name is another one."""

    at: Installed = field(repr=False)
    name: str
    uid: str

    @property
    def _selector(self) -> str:
        return f"stayer.dev/run-uid={self.uid}"

    def document(self) -> Document | None:
        """The object, None once it is gone or replaced."""
        found = self.at.api.find(self.at.path("benchmarkruns", self.name))
        return found if found is not None and found["metadata"]["uid"] == self.uid else None

    @property
    def status(self) -> Document:
        return (self.document() or {}).get("status") or {}

    def trials(self) -> list[Document]:
        """All Trials, inventories too, by name."""
        return self.at.api.list(self.at.path("trials"), labelSelector=self._selector)

    def attempts(self) -> list[Document]:
        """Trials that are scored."""
        return [trial for trial in self.trials() if trial["spec"]["kind"] == "attempt"]

    def only(self) -> Document:
        """The only attempt."""
        [trial] = self.attempts()
        return trial

    def pods(self, role: str = "") -> list[Document]:
        """Pods; of one role (agent, adjudicator)."""
        more = f",stayer.dev/role={role}" if role else ""
        return self.at.api.list(pods_path(self.at.namespace), labelSelector=self._selector + more)

    def policies(self) -> list[Document]:
        """Its NetworkPolicies."""
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.at.namespace}/networkpolicies"
        return self.at.api.list(path, labelSelector=self._selector)

    def delete(self) -> None:
        """As `kubectl delete --wait=false`."""
        self.at.api.delete(self.at.path("benchmarkruns", self.name))

    def change(self, spec: Document) -> None:
        """Merge into the spec."""
        self.at.api.merge(self.at.path("benchmarkruns", self.name), {"spec": spec})

    def left_behind(self) -> list[str]:
        """Everything of it that the cluster still holds."""
        run = [f"run {self.name}"] if self.document() is not None else []
        kinds = {"trial": self.trials(), "pod": self.pods(), "policy": self.policies()}
        return run + [f"{k} {o['metadata']['name']}" for k, found in kinds.items() for o in found]

    def wait(self, holds: Callable[[Run], object], what: str, seconds: float = 120) -> None:
        """Wait until `holds` of this run."""
        until(lambda: holds(self), f"run {self.name}: {what}", seconds, lambda: describe(self))

    def wait_for_end(self, seconds: float = 240) -> None:
        """Wait until the run is complete and its pods are gone."""
        self.wait(lambda run: run.status.get("phase") in ENDED, "its end", seconds)
        self.wait(lambda run: not run.pods(), "its pods to go", 60)

    def wait_for_nothing(self, seconds: float = 60) -> None:
        """Wait until nothing of it is left."""
        self.wait(lambda run: not run.left_behind(), "nothing left behind", seconds)


def until(
    holds: Callable[[], object],
    what: str,
    seconds: float,
    explain: Callable[[], str] = lambda: "",
    pause: float = 0.25,
) -> None:
    """Wait for a condition. A server that does not answer counts as: not yet."""
    end = time.monotonic() + seconds
    trouble = ""
    while True:
        try:
            if holds():
                return
        except (httpx.TransportError, StoreError, ApiError) as error:
            trouble = f"\nlast error: {error}"
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {seconds:.0f} s{trouble}\n{_safely(explain)}")
        time.sleep(pause)


def _safely(explain: Callable[[], str]) -> str:
    try:
        return explain()
    except (httpx.TransportError, ApiError) as error:
        return f"(nothing can be said: {error})"


def condition(document: Document, kind: str) -> str:
    """Status of a condition, empty where there is none."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((str(c["status"]) for c in conditions if c["type"] == kind), "")


def reason(document: Document, kind: str) -> str:
    """Reason of a condition, empty where there is none."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((str(c.get("reason", "")) for c in conditions if c["type"] == kind), "")


def phase(trial: Document) -> str:
    """Of a Trial or pod; the one of a Trial that was never written to is Pending."""
    return str((trial.get("status") or {}).get("phase") or "Pending")


def describe(run: Run) -> str:
    """Everything that a person would look at first."""
    lines = [f"run: {_conditions(run.document() or {})}"]
    for trial in run.trials():
        status = trial.get("status") or {}
        lines.append(
            f"trial {trial['metadata']['name']}: {phase(trial)}; {status.get('message', '')}"
        )
        lines.append(f"  {_conditions(trial)}")
    for pod in run.pods():
        lines += _about_pod(run.at, pod)
    path = f"/api/v1/namespaces/{run.at.namespace}/events"
    mine = [
        e for e in run.at.api.list(path) if e["involvedObject"].get("name", "").startswith(run.name)
    ]
    lines += [
        f"event {e['involvedObject']['name']}: {e['reason']}: {e.get('message', '')[:200]}"
        for e in mine[-20:]
    ]
    for pod in run.at.operators():
        lines.append(run.at.log(SYSTEM, pod["metadata"]["name"], "operator", 25))
    return "\n".join(lines)


def _about_pod(at: Installed, pod: Document) -> list[str]:
    name, status = pod["metadata"]["name"], pod["status"]
    deleted = " being deleted" if "deletionTimestamp" in pod["metadata"] else ""
    lines = [f"pod {name}: {phase(pod)}{deleted} {status.get('reason', '')}; {_conditions(pod)}"]
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    lines += [f"  {c['name']}: {json.dumps(c['state'])[:300]}" for c in every]
    for container in ("recorder", "adjudicator"):
        if any(c["name"] == container for c in every):
            lines.append(at.log(at.namespace, name, container))
    return lines


def _conditions(document: Document) -> str:
    conditions = (document.get("status") or {}).get("conditions") or ()
    words = (f"{c['type']}={c['status']} {c.get('reason', '')}".strip() for c in conditions)
    return ", ".join(words)


def run_manifest(
    agents: Sequence[Mapping[str, Any]], *, name: str = "", taskset: str, **spec: Any
) -> Document:
    """A run of these agents on the small task, exact to repeat; `spec` adds and replaces."""
    return {
        "apiVersion": "stayer.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name or unique_name("t")},
        "spec": {
            "benchmark": "loops",
            "tasks": {"source": {"s3": {"prefix": taskset}}, "include": ["task_durations"]},
            "matrix": {"agents": list(agents)},
            "snapshots": {"betweenStepsOnly": True, "everySnapshot": True},
            **spec,
        },
    }


def unique_name(prefix: str) -> str:
    """A run name that nobody else has."""
    return f"{prefix}-{uuid.uuid4().hex[:6]}"


class ClusterLock:
    """Between test processes that share a cluster: whoever disturbs it must be alone."""

    @cached_property
    def path(self) -> Path:
        state = Path(os.environ.get("STAYER_CLUSTER_STATE", Path.home() / ".local/state/stayer"))
        return Path(os.environ.get("STAYER_CLUSTER_LOCK", state / "tests.lock"))

    @contextlib.contextmanager
    def held(self, *, alone: bool) -> Iterator[None]:
        """Hold it, with others or alone."""
        with self.path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
