"""Takes the cluster down and leaves the machine as it was, from whatever state it is in."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_cluster.before import load_before
from local_cluster.cgroups import find_pod_processes, remove_cgroups
from local_cluster.components import Supervisor
from local_cluster.console import Console
from local_cluster.errors import LocalClusterError
from local_cluster.mounts import unmount_below
from local_cluster.network import restore_network
from local_cluster.outside import find_shim_sockets, remove_outside
from local_cluster.packetfilter import remove_rules
from local_cluster.processes import end_processes
from local_cluster.settings import Places

# Without the kubelet nothing starts pods again; containerd stays to see their end.
FIRST = ("kubelet", "kube-router", "kube-proxy", "scheduler", "controller-manager")
THEN = ("containerd", "apiserver", "registry")
POD_PATIENCE = 3.0


def take_down(places: Places, supervisor: Supervisor, console: Console, *, keep: bool) -> None:
    """End every process, remove everything that was made, and the state unless it is kept.

    Raises:
        LocalClusterError: something would not go; the state is then left, for another try.
    """
    with console.step("ending the cluster's processes", 10):
        _end_processes(places, supervisor)
    with console.step("removing mounts, control groups and network", 5):
        trouble = _clean_machine(places)
    if trouble:
        raise LocalClusterError(
            "some things would not go:\n  " + "\n  ".join(trouble),
            advice="run `cluster down` again; what it names is the cluster's own",
        )
    if keep:
        # The rest is made anew, and must not outlive the containers that it speaks of.
        for name in ("containerd", "kubelet", "cni", "pod-logs", "processes", "before.json"):
            _remove(places.state / name)
    else:
        _remove_state(places.state)


def _end_processes(places: Places, supervisor: Supervisor) -> None:
    _stop_all(supervisor, FIRST)
    end_processes(find_pod_processes(places.unique_name), POD_PATIENCE)
    _stop_all(supervisor, THEN)
    # Last, so that the API server can write until its end.
    _stop_all(supervisor, ("etcd",))
    # Shims above all: they live on without containerd, by design.
    end_processes(supervisor.table.stray(), 1)
    end_processes(find_pod_processes(places.unique_name), 0)


def _stop_all(supervisor: Supervisor, names: tuple[str, ...]) -> None:
    stop: Callable[[str], bool] = supervisor.stop_by_name
    with ThreadPoolExecutor() as pool:
        list(pool.map(stop, names))


def _clean_machine(places: Places) -> list[str]:
    sockets = find_shim_sockets(places)
    trouble = [f"mount {path}" for path in unmount_below(places.state)]
    trouble += [f"mount {path}" for path in unmount_below(places.run)]
    trouble += [f"control group {path}" for path in remove_cgroups(places.unique_name)]
    before = load_before(places)
    # Without it no `up` in this directory came as far as the network: what there is of it
    # belongs to the cluster of another directory.
    if before is not None:
        trouble += restore_network(before)
        trouble += remove_rules(before.filter)
        remove_outside(places, sockets, before.paths)
    if not trouble:
        _remove(places.run)
    return trouble


def _remove_state(state: Path) -> None:
    """Remove what we made in the directory, and the directory if nothing else is in it."""
    if not (state / "choices.json").exists():
        return
    # Last, because it says that this is a state directory: a kill before leaves it one.
    for path in sorted(state.iterdir(), key=lambda path: path.name == "choices.json"):
        if path.name != ".lock":
            _remove(path)
    (state / ".lock").unlink(missing_ok=True)
    state.rmdir()


def _remove(path: Path) -> None:
    for attempt in range(10):
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            return
        except OSError:
            # A process that is just ending may still write.
            if attempt == 9:
                raise
            time.sleep(0.3)
        else:
            return
