"""A trial that pries: what its agent runs inside of its task container, what it plants for the
adjudicator, and which addresses it tries.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from makers_cluster import SYSTEM, Api, Document, Installed, Run
from makers_outcome import read_object
from makers_own_operator import api_server
from makers_taskset import TASKSET
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.storage.layout import taskset_entry

SOURCES = Path(__file__).parent / "cluster/pods"
GOLD = "_WHOLE = re.compile"  # of the gold of duration-text; in no test and not in the base
CONFESS = "durations/confess"
UNITS = ("duration-text", "duration-words", "retry-schedule")
NOP = {"name": "nop", "harness": "nop"}


@dataclass(frozen=True)
class Addresses:
    """Where a trial pod may connect to, and where it must not."""

    forbidden: dict[str, str]
    allowed: dict[str, str]
    name_server: str
    relay_url: str


def find_addresses(installed: Installed, metadata: str) -> Addresses:
    """Of this cluster; `metadata` is a server at the metadata address."""
    api = installed.api
    [pod] = installed.operators()
    node_ip = pod["status"]["hostIP"]
    slices = api.list("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
    [endpoint] = [s for s in slices if s["metadata"]["name"] == "kubernetes"]
    relay = service(api, SYSTEM, "stayer-relay")
    dns = next(
        s for s in api.list("/api/v1/services") if any(p["port"] == 53 for p in s["spec"]["ports"])
    )
    return Addresses(
        forbidden={
            "API server's Service": api_server(api),
            "API server": f"{endpoint['endpoints'][0]['addresses'][0]}:"
            f"{endpoint['ports'][0]['port']}",
            "kubelet": f"{node_ip}:10250",
            "object store": urlsplit(os.environ["STAYER_S3_ENDPOINT"]).netloc,
            # The operator's progress endpoint may be reached, its metrics may not.
            "another pod": f"{pod['status']['podIP']}:9090",
            "cluster DNS over TCP": f"{dns['spec']['clusterIP']}:53",
            "metadata address": metadata,
        },
        allowed={
            "relay": f"{relay}:8088",
            "progress endpoint": f"{service(api, SYSTEM, 'stayer-operator')}:8087",
        },
        name_server=f"{dns['spec']['clusterIP']}:53",
        relay_url=f"http://{relay}:8088",
    )


def service(api: Api, namespace: str, name: str) -> str:
    """Address of a Service."""
    path = f"/api/v1/namespaces/{namespace}/services/{name}"
    return str(api.call("GET", path).json()["spec"]["clusterIP"])


@dataclass(frozen=True)
class Runs:
    """Runs of the installed operator."""

    prying: Run
    off: Run
    preferred: Run
    open: Run


def task_digest() -> str:
    """Of the small task, as the task set has it."""
    data = read_object(taskset_entry(TASKSET, "task_durations"))
    assert data is not None
    return TaskRecord.from_bytes(data).digest


def looking_agent(addresses: Addresses, digest: str) -> Document:
    """Looks around, and does nothing else."""
    script = yaml.safe_dump({"steps": [_look()]}, width=10_000)
    return _scripted("looking", script, addresses, digest)


def _look() -> dict[str, Any]:
    return run_step("python3", "-c", (SOURCES / "agent_probe.py").read_text())


def _scripted(name: str, script: str, addresses: Addresses, digest: str) -> Document:
    """An agent whose probe knows where to look."""
    probe = {
        "addresses": [*addresses.forbidden.values(), *addresses.allowed.values()],
        "name_servers": [addresses.name_server],
        "names": ["kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
        "urls": [
            f"{addresses.relay_url}/healthz",
            f"{addresses.relay_url}/v1/objects/tasks/{digest}/gold.tar.zst",
        ],
        "gold": GOLD,
    }
    return {
        "name": name,
        "harness": "scripted",
        "script": script,
        "env": [{"name": "AGENT_PROBE", "value": json.dumps(probe)}],
    }


def prying_agent(addresses: Addresses, digest: str) -> Document:
    """Looks around, plants a spy for the adjudicator, works, and has the spy confess."""
    forbidden = json.dumps(list(addresses.forbidden.values()))
    steps: list[dict[str, Any]] = [
        _look(),
        write_step("durations/planted.py", (SOURCES / "planted.py").read_text()),
        run_step("bash", "-c", "echo 'import durations.planted' >> durations/__init__.py"),
        *({"applyDiff": {"unit": unit}} for unit in UNITS),
        write_step(CONFESS, forbidden),
    ]
    script = yaml.safe_dump({"steps": steps}, width=10_000)
    return _scripted("prying", script, addresses, digest)


def run_step(*command: str) -> dict[str, Any]:
    """Run a program in the task container."""
    return {"run": {"command": list(command), "timeoutSeconds": 60}}


def write_step(path: str, text: str) -> dict[str, Any]:
    """Write a file of the workspace."""
    return {"writeFile": {"path": path, "content": text}}
