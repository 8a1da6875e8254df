"""What the machine was like before the cluster, so that `down` can leave it like that."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from local_cluster.packetfilter import FilterState, read_filter_state
from local_cluster.settings import Places, write_file

# The kubelet sets all but the first two by itself.
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
}
# Programs of the cluster make these outside of its directories, and cannot be told not to.
OUTSIDE = (
    "/run/containerd/s",
    "/var/lib/cni/results",
    "/var/lib/kubelet/device-plugins",
    "/var/log/containers",
)


@dataclass(frozen=True)
class Before:
    """The machine before the first `up`.

    Attributes:
        sysctls: values by their path below /proc/sys.
        paths: those of OUTSIDE, and their parents, that existed.
    """

    sysctls: dict[str, str]
    paths: tuple[str, ...]
    filter: FilterState


def load_before(places: Places) -> Before | None:
    """What was remembered; None if no `up` came that far."""
    path = _path(places)
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    state = {name: tuple(values) for name, values in stored["filter"].items()}
    return Before(stored["sysctls"], tuple(stored["paths"]), FilterState(**state))


def remember_before(places: Places) -> None:
    """Remember the machine as it is, once."""
    if _path(places).exists():
        return
    values = {name: Path("/proc/sys") / name for name in SYSCTLS}
    outside = {str(path) for name in OUTSIDE for path in (Path(name), *Path(name).parents)}
    before = Before(
        sysctls={n: p.read_text().strip() for n, p in values.items() if p.exists()},
        paths=tuple(sorted(path for path in outside if Path(path).exists())),
        filter=read_filter_state(),
    )
    write_file(_path(places), json.dumps(asdict(before)) + "\n")


def _path(places: Places) -> Path:
    return places.state / "before.json"
