"""A network namespace of the tests' own on the pods' bridge, and processes in it.

The relay takes requests of trial pods only: a policy made here lets this one address in, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from makers_cluster import SYSTEM, Api, until

NAME = "stayer-outside"
LINK = "stayer-outside"
BRIDGE = "stayer-br0"
ADDRESS = "10.244.0.254"
GATEWAY = "10.244.0.1"
POLICIES = f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies"


def run_inside(command: Sequence[str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a program in the namespace, as root of a user namespace of its own, as pods are."""
    enter = ["ip", "netns", "exec", NAME, "unshare", "--user", "--map-root-user"]
    return subprocess.run(
        [*enter, *command], capture_output=True, text=True, check=False, timeout=seconds
    )


def run_python(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the tests' own interpreter."""
    return run_inside([sys.executable, str(script), *arguments])


@contextmanager
def outside(api: Api, url: str) -> Iterator[None]:
    """The namespace, once it reaches the relay at `url`."""
    _remove()
    try:
        _make()
        api.delete(f"{POLICIES}/{NAME}")
        api.post(POLICIES, _policy())
        check = f"import urllib.request as r; r.urlopen('{url}/healthz', timeout=2)"
        until(
            lambda: run_inside([sys.executable, "-c", check]).returncode == 0,
            "the relay to be reached from the test's network namespace",
            60,
        )
        yield
    finally:
        _remove()
        api.delete(f"{POLICIES}/{NAME}")


def _make() -> None:
    _ip("netns", "add", NAME)
    _ip("link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NAME)
    _ip("link", "set", LINK, "master", BRIDGE, "up")
    for arguments in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{ADDRESS}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", GATEWAY),
    ):
        _ip("-n", NAME, *arguments)


def _remove() -> None:
    subprocess.run(["ip", "netns", "delete", NAME], capture_output=True, check=False)
    subprocess.run(["ip", "link", "delete", LINK], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _policy() -> dict[str, object]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/component": "relay"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"ipBlock": {"cidr": f"{ADDRESS}/32"}}]}],
        },
    }
