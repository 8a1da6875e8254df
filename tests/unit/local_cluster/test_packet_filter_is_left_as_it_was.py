"""Of the packet filter only what the cluster made is taken away."""

import socket
from pathlib import Path

import pytest

from local_cluster.errors import LocalClusterError
from local_cluster.mounts import parse_mounts_below
from local_cluster.network import check_ports, find_address_conflicts
from local_cluster.packetfilter import FilterState, parse_chains, parse_tables, plan_removal

SAVE = r"""
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER-USER - [0:0]
:KUBE-ROUTER-INPUT - [0:0]
:KUBE-POD-FW-ABC - [0:0]
-A INPUT -m comment --comment "kube-router netpol - X" -j KUBE-ROUTER-INPUT
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A FORWARD -j DOCKER-USER
-A KUBE-ROUTER-INPUT -s 10.244.0.2/32 -j KUBE-POD-FW-ABC
-A KUBE-POD-FW-ABC -j ACCEPT
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
:CNI-1111 - [0:0]
:CNI-2222 - [0:0]
-A POSTROUTING -s 10.244.0.2/32 -m comment --comment "name: \"stayer-local\" id: \"a\"" -j CNI-1111
-A POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"podman\" id: \"b\"" -j CNI-2222
-A CNI-1111 ! -d 224.0.0.0/4 -m comment --comment "name: \"stayer-local\" id: \"a\"" -j MASQUERADE
-A CNI-2222 ! -d 224.0.0.0/4 -m comment --comment "name: \"podman\" id: \"b\"" -j MASQUERADE
COMMIT
"""


def test_our_chains_go_with_the_rules_that_lead_into_them() -> None:
    plan = plan_removal(SAVE, []).splitlines()

    assert plan == [
        "*filter",
        '-D INPUT -m comment --comment "kube-router netpol - X" -j KUBE-ROUTER-INPUT',
        "-F KUBE-POD-FW-ABC",
        "-F KUBE-ROUTER-INPUT",
        "-X KUBE-POD-FW-ABC",
        "-X KUBE-ROUTER-INPUT",
        "COMMIT",
        "*nat",
        "-D POSTROUTING -s 10.244.0.2/32 -m comment --comment "
        r'"name: \"stayer-local\" id: \"a\"" -j CNI-1111',
        "-F CNI-1111",
        "-X CNI-1111",
        "COMMIT",
    ]


def test_chains_that_were_there_before_stay() -> None:
    plan = plan_removal(SAVE, parse_chains(SAVE))

    assert plan == ""


def test_a_machine_without_our_rules_has_nothing_to_remove() -> None:
    assert plan_removal("*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n", []) == ""


def test_tables_are_read_with_their_family() -> None:
    assert parse_tables("table ip nat\ntable ip6 kube-proxy\n") == ("ip nat", "ip6 kube-proxy")


def test_another_kubernetes_is_recognised_by_its_chains_or_tables() -> None:
    assert FilterState(chains=("4 nat KUBE-SERVICES",), tables=(), sets=()).shows_kubernetes()
    assert FilterState(chains=(), tables=("ip kube-proxy",), sets=()).shows_kubernetes()
    assert not FilterState(chains=("4 nat DOCKER",), tables=("ip nat",), sets=()).shows_kubernetes()


def test_mounts_are_found_below_a_directory_last_mounted_first() -> None:
    mountinfo = "\n".join(
        f"{number} 1 0:1 / {point} rw - tmpfs tmpfs rw"
        for number, point in enumerate(
            ["/", "/state", r"/state/a\040b", "/state/a/c", "/stateful", "/state/a/c"]
        )
    )

    assert parse_mounts_below(mountinfo, Path("/state")) == [
        Path("/state/a/c"),
        Path("/state/a/c"),
        Path("/state/a b"),
        Path("/state"),
    ]


def link(name: str, address: str, length: int) -> dict[str, object]:
    return {
        "ifname": name,
        "addr_info": [{"family": "inet", "local": address, "prefixlen": length}],
    }


def test_a_link_in_the_clusters_networks_is_a_conflict() -> None:
    links = [link("vpn0", "10.96.4.1", 24), link("eth0", "192.0.2.7", 24)]

    assert find_address_conflicts(links) == ["vpn0 has 10.96.4.1/24"]


def test_a_network_that_contains_ours_is_a_conflict() -> None:
    assert find_address_conflicts([link("eth0", "10.1.2.3", 8)]) == ["eth0 has 10.1.2.3/8"]


def test_our_own_links_are_none() -> None:
    assert find_address_conflicts([link("stayer-node", "10.97.0.1", 32)]) == []


def test_every_taken_port_is_named_in_one_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        taken = [server.getsockname() for server in (one, two)]

        with pytest.raises(LocalClusterError) as caught:
            check_ports(taken)

    for _, port in taken:
        assert f"127.0.0.1:{port}" in caught.value.what


def test_an_address_that_is_not_there_yet_is_free() -> None:
    check_ports([("198.51.100.7", 6443)])
