"""NetworkPolicies are enforced: what is allowed works, what is not is refused."""

from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator

import pytest

from makers_local_cluster import LocalCluster, wait_until

pytestmark = pytest.mark.cluster

# Clouds answer here with the machine's credentials.
METADATA_ADDRESS = "169.254.169.254"
METADATA_LINK = "stayer-test-md"
PORT = 8000
SERVER = ["python3", "-m", "http.server", str(PORT)]
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2).close()
except OSError as error:
    print("refused", error)
else:
    print("connected")
"""


class Target:
    """A place to connect to."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port


def can_connect(cluster: LocalCluster, pod: str, target: Target) -> bool:
    command = ["python3", "-c", CONNECT, target.address, str(target.port)]
    return cluster.kubectl("exec", pod, "--", *command).startswith("connected")


def start_server(cluster: LocalCluster, name: str) -> Target:
    probe = {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1}
    cluster.start_pod(name, SERVER, container={"readinessProbe": probe})
    return Target(cluster.wait_until_ready(name)["status"]["podIP"], PORT)


@pytest.fixture(scope="module")
def allowed(cluster: LocalCluster) -> Target:
    """A server that the restricted pod may reach."""
    return start_server(cluster, "allowed")


@pytest.fixture(scope="module")
def other(cluster: LocalCluster) -> Target:
    """A server that it may not reach."""
    return start_server(cluster, "other")


@pytest.fixture(scope="module")
def free(cluster: LocalCluster) -> str:
    """A pod under no policy."""
    cluster.start_pod("free", ["sleep", "600"])
    cluster.wait_until_ready("free")
    return "free"


@pytest.fixture(scope="module")
def restricted(cluster: LocalCluster, allowed: Target, other: Target) -> str:
    """A pod that may reach the allowed server and nothing else."""
    rule = {
        "to": [{"podSelector": {"matchLabels": {"test-pod": "allowed"}}}],
        "ports": [{"port": PORT}],
    }
    cluster.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "restricted"},
            "spec": {
                "podSelector": {"matchLabels": {"test-pod": "restricted"}},
                "policyTypes": ["Egress"],
                "egress": [rule],
            },
        }
    )
    cluster.start_pod("restricted", ["sleep", "600"])
    cluster.wait_until_ready("restricted")
    # A new pod is not under its policies before the enforcer has seen it.
    wait_until(lambda: not can_connect(cluster, "restricted", other), "the policy", 30)
    wait_until(lambda: can_connect(cluster, "restricted", allowed), "the policy's exception", 30)
    return "restricted"


@pytest.fixture(scope="module")
def metadata() -> Iterator[Target]:
    """A server at the address that must never be reached, on a link of this test's own."""
    # A bridge, because not every kernel has dummy links.
    subprocess.run(["ip", "link", "add", METADATA_LINK, "type", "bridge"], check=True)
    try:
        address = ["ip", "address", "add", f"{METADATA_ADDRESS}/32", "dev", METADATA_LINK]
        subprocess.run(address, check=True)
        subprocess.run(["ip", "link", "set", METADATA_LINK, "up"], check=True)
        with socketserver.TCPServer(
            (METADATA_ADDRESS, 80), socketserver.BaseRequestHandler
        ) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield Target(METADATA_ADDRESS, 80)
            server.shutdown()
            thread.join()
    finally:
        subprocess.run(["ip", "link", "delete", METADATA_LINK], check=True)


def test_what_the_policy_allows_works(
    cluster: LocalCluster, restricted: str, allowed: Target
) -> None:
    assert can_connect(cluster, restricted, allowed)


def test_another_pod_is_refused_although_it_answers_others(
    cluster: LocalCluster, restricted: str, free: str, other: Target
) -> None:
    assert can_connect(cluster, free, other)
    assert not can_connect(cluster, restricted, other)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(Target("10.96.0.20", 7070), id="a service"),
        pytest.param(Target("10.96.0.1", 443), id="the API server's service"),
        pytest.param(Target("10.97.0.1", 6443), id="the API server itself"),
        pytest.param(Target("10.97.0.1", 10250), id="the kubelet"),
    ],
)
def test_the_cluster_itself_is_refused_although_it_answers_others(
    cluster: LocalCluster, restricted: str, free: str, target: Target
) -> None:
    assert can_connect(cluster, free, target)
    assert not can_connect(cluster, restricted, target)


def test_the_metadata_address_is_refused_although_it_answers_others(
    cluster: LocalCluster, restricted: str, free: str, metadata: Target
) -> None:
    assert can_connect(cluster, free, metadata)
    assert not can_connect(cluster, restricted, metadata)
