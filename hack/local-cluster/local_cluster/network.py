"""The machine's network: what is checked before, made for and taken away after the cluster."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from local_cluster.before import SYSCTLS, Before, load_before, remember_before
from local_cluster.commands import read_output, run_logged, try_command
from local_cluster.errors import LocalClusterError
from local_cluster.packetfilter import read_filter_state
from local_cluster.settings import (
    BRIDGE,
    NODE_ADDRESS,
    NODE_LINK,
    POD_NETWORK,
    SERVICE_NETWORK,
    Places,
)

OUR_LINKS = (NODE_LINK, BRIDGE)


def find_address_conflicts(links: Iterable[dict[str, Any]]) -> list[str]:
    """Addresses of links not ours that lie in the cluster's networks."""
    networks = [ipaddress.ip_network(text) for text in (POD_NETWORK, SERVICE_NETWORK)]
    networks.append(ipaddress.ip_network(f"{NODE_ADDRESS}/32"))
    conflicts: list[str] = []
    for link in links:
        if link["ifname"] in OUR_LINKS:
            continue
        for entry in link.get("addr_info", []):
            if entry.get("family") != "inet":
                continue
            network = ipaddress.ip_network(f"{entry['local']}/{entry['prefixlen']}", strict=False)
            if any(network.overlaps(ours) for ours in networks):
                conflicts.append(f"{link['ifname']} has {entry['local']}/{entry['prefixlen']}")
    return conflicts


def check_machine(places: Places) -> None:
    """Refuse a machine on which another cluster's network lives: the two would mix."""
    if load_before(places) is not None:
        return
    conflicts = find_address_conflicts(json.loads(read_output(["ip", "-json", "address"])))
    if conflicts:
        raise LocalClusterError(
            f"the cluster's networks are in use: {'; '.join(conflicts)}",
            advice="end what uses them, or use another machine; the addresses are fixed",
        )
    if read_filter_state().shows_kubernetes() or Path(f"/sys/class/net/{NODE_LINK}").exists():
        raise LocalClusterError(
            "another Kubernetes, or a local cluster of another state directory, is on this machine",
            advice="run `cluster down --state DIR` for that directory, or end the other Kubernetes",
        )


def check_ports(ports: Iterable[tuple[str, int]]) -> None:
    """Raise one error that names every port that is taken."""
    taken = [f"{address}:{port}" for address, port in ports if not _is_free(address, port)]
    if taken:
        raise LocalClusterError(
            f"ports are taken by another program: {', '.join(taken)}",
            advice="end it (`ss -tlnp` names it); for the registry choose --registry-port",
        )


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: connections that linger from before do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno != 98  # EADDRINUSE; an address not there yet is free
    return True


def ensure_network(places: Places) -> None:
    """Make the node's link and set what forwarding needs; remember what was before."""
    log = places.logs / "step-network.log"
    try_command(["modprobe", "-a", "br_netfilter", "overlay"])
    remember_before(places)
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys") / name
        if not path.exists():
            if name.startswith("net/bridge"):
                raise LocalClusterError(
                    "the kernel has no br_netfilter: NetworkPolicies would not hold on a bridge",
                    advice="load the module br_netfilter (`modprobe br_netfilter`)",
                )
        elif path.read_text().strip() != value:
            path.write_text(value)
    if not Path(f"/sys/class/net/{NODE_LINK}").exists():
        # A bridge without ports rather than a dummy link: bridges are needed anyway, and not
        # every kernel has dummies.
        make = ["ip", "link", "add", NODE_LINK, "type", "bridge"]
        run_logged("making the node's link", make, log)
    address = ["ip", "address", "replace", f"{NODE_ADDRESS}/32", "dev", NODE_LINK]
    run_logged("giving the node its address", address, log)
    run_logged("raising the node's link", ["ip", "link", "set", NODE_LINK, "up"], log)
    # The packet filter turns service addresses into pods' only after a route was found, and a
    # machine without a default route has none.
    route = ["ip", "route", "replace", SERVICE_NETWORK, "dev", NODE_LINK]
    run_logged("making a route to services", route, log)


def restore_network(before: Before) -> list[str]:
    """Remove our links and put the machine's settings back; return what could not be done."""
    trouble: list[str] = []
    # Links of pods whose network outlives them for a while would outlive their bridge, too.
    ports = [port.name for link in OUR_LINKS for port in bridge_ports(link)]
    for link in (*ports, *OUR_LINKS):
        if Path(f"/sys/class/net/{link}").exists():
            result = try_command(["ip", "link", "delete", link])
            trouble += [result.stderr.strip()] if result.returncode else []
    for name, value in before.sysctls.items():
        (Path("/proc/sys") / name).write_text(value)
    return trouble


def bridge_ports(link: str, devices: Path = Path("/sys/class/net")) -> list[Path]:
    """The links that are plugged into a bridge of ours; none where there is no such bridge."""
    ports = devices / link / "brif"
    return sorted(ports.iterdir()) if ports.is_dir() else []
