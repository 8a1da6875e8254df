"""Files that the cluster's programs leave outside of its directories: found and removed."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from local_cluster.before import OUTSIDE
from local_cluster.render import CNI_NETWORK
from local_cluster.settings import Places


def find_shim_sockets(places: Places) -> list[Path]:
    """The sockets of our shims, from containerd's own notes about them."""
    sockets: list[Path] = []
    for note in places.run.glob("state/io.containerd.runtime.v2.task/*/*/bootstrap.json"):
        with contextlib.suppress(ValueError, OSError):
            address = str(json.loads(note.read_text()).get("address", ""))
            sockets.append(Path(address.removeprefix("unix://")))
    return [path for path in sockets if path.is_absolute()]


def remove_outside(places: Places, sockets: Iterable[Path], existed: Iterable[str]) -> None:
    """Remove our files outside, and directories that were not there before and are empty now."""
    known = set(existed)
    for socket in sockets:
        socket.unlink(missing_ok=True)
    for link in _entries("/var/log/containers"):
        if link.is_symlink() and places.state in link.readlink().parents:
            link.unlink()
    _remove_cni_results(Path("/var/lib/cni/results"))
    devices = "/var/lib/kubelet/device-plugins"
    if devices not in known:
        shutil.rmtree(devices, ignore_errors=True)
    for name in OUTSIDE:
        for path in (Path(name), *Path(name).parents):
            if str(path) in known:
                break
            with contextlib.suppress(OSError):
                path.rmdir()


def _remove_cni_results(folder: Path) -> None:
    for result in _entries(str(folder)):
        if result.name.startswith(f"{CNI_NETWORK}-"):
            container = result.name.removeprefix(f"{CNI_NETWORK}-").rpartition("-")[0]
            result.unlink()
            (folder / f"cni-loopback-{container}-lo").unlink(missing_ok=True)


def _entries(folder: str) -> list[Path]:
    path = Path(folder)
    return list(path.iterdir()) if path.is_dir() else []
