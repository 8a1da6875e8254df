"""The control groups below which all pods live: made, used to find pods' processes, removed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from local_cluster.processes import Identity, identify

MOUNT = Path("/sys/fs/cgroup")
V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")


def _hierarchies() -> list[Path]:
    """Every mounted hierarchy: one on cgroup v2, one for each controller on v1."""
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return [path for path in MOUNT.iterdir() if path.is_dir() and not path.is_symlink()]


def ensure_cgroups(name: str) -> None:
    """Make our group in every hierarchy, usable by children."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        # On v1 a new cpuset is empty and takes no process before it is filled.
        for file in ("cpuset.cpus", "cpuset.mems"):
            own, parents = group / file, hierarchy / file
            if own.exists() and parents.exists() and not own.read_text().strip():
                own.write_text(parents.read_text())
        # On v2 a controller must be handed down at every level.
        for level in (hierarchy, group):
            control = level / "cgroup.subtree_control"
            for controller in V2_CONTROLLERS if control.exists() else ():
                with contextlib.suppress(OSError):
                    control.write_text(f"+{controller}")


def find_pod_processes(name: str) -> list[Identity]:
    """Every living process in our groups: in no other way does one get there."""
    found: dict[int, Identity] = {}
    for group in _groups(name):
        try:
            pids = (group / "cgroup.procs").read_text().split()
        except OSError:
            continue
        for pid in map(int, pids):
            identity = identify(pid)
            if identity is not None:
                found[pid] = identity
    return list(found.values())


def remove_cgroups(name: str, patience: float = 10) -> list[Path]:
    """Remove our groups, deepest first; return those that would not go."""
    deadline = time.monotonic() + patience
    while True:
        left = [group for group in _groups(name) if not _remove(group)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


def _groups(name: str) -> Iterator[Path]:
    for hierarchy in _hierarchies():
        top = hierarchy / name
        if top.is_dir():
            inner = [path for path in top.rglob("*") if path.is_dir()]
            yield from sorted(inner, key=lambda path: len(path.parts), reverse=True)
            yield top


def _remove(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
