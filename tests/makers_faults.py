"""Faults on the node of the cluster, and what the API server says was done meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from makers_cluster import RUNS, Document, Run

CLUSTER = Path(__file__).parents[1] / "hack/local-cluster/cluster"


def cluster(*arguments: str) -> None:
    """A command of hack/local-cluster: stop, start, restart of one part."""
    done = subprocess.run([CLUSTER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"cluster {' '.join(arguments)}: {done.stdout}{done.stderr}"


def processes_of(pod: Document) -> Iterator[tuple[int, str]]:
    """Process ids on this node of what runs in a pod, with their command lines."""
    mark = f"pod{pod['metadata']['uid']}"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark in (entry / "cgroup").read_text():
                yield int(entry.name), (entry / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue


def find_process(pod: Document, words: str) -> int | None:
    """The process of a pod whose command line has these words."""
    return next((pid for pid, command in processes_of(pod) if words in command), None)


def send(pod: Document, words: str, number: signal.Signals) -> int | None:
    """Signal a process of a pod from outside; its id, None when it is not there."""
    pid = find_process(pod, words)
    if pid is None:
        return None
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return None
    return pid


@dataclass
class Audit:
    """The API server's audit log from now on."""

    path: Path = field(default_factory=lambda: Path(os.environ["STAYER_AUDIT_LOG"]))
    offset: int = -1

    def __post_init__(self) -> None:
        if self.offset < 0:
            self.offset = self.path.stat().st_size

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was answered since this log was opened."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def fresh(self) -> list[dict[str, Any]]:
        """What came since the last call of this."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def pods_created(audit: Audit, run: Run) -> Counter[str]:
    """How often the POST of each pod of the run was answered 201."""
    return Counter(
        entry["objectRef"]["name"]
        for entry in audit.entries()
        if _created(entry, "pods") and entry["objectRef"]["name"].startswith(f"{run.name}-")
    )


def _created(entry: dict[str, Any], resource: str) -> bool:
    about = entry.get("objectRef") or {}
    return (
        entry["verb"] == "create"
        and about.get("resource") == resource
        and "subresource" not in about
        and about.get("namespace") == RUNS
        and entry.get("responseStatus", {}).get("code") == 201
    )


def operator_writes(entry: dict[str, Any]) -> bool:
    """Whether it is a successful write of the operator to something other than lease or event."""
    about = entry.get("objectRef") or {}
    return (
        entry["user"]["username"].endswith(":stayer-operator")
        and entry["verb"] in ("create", "patch", "delete", "deletecollection")
        and about.get("resource") in ("pods", "trials", "benchmarkruns", "networkpolicies")
        and entry.get("responseStatus", {}).get("code", 500) < 300
    )


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends within that time."""
    end = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
