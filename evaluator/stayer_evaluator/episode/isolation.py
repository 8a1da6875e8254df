"""Proofs made before any agent code runs: the network is closed, root is not the node's root.

A policy that is not enforced and a `hostUsers: false` that is ignored both look like success to
everybody else (security.md, points 4 and 5).
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

Address = tuple[str, int]
CONNECT_SECONDS = 2.0
BETWEEN_TRIES = 1.0
WHOLE_RANGE = 4294967295


class NotIsolated(Exception):  # noqa: N818 (reads as what happened)
    """The pod is less isolated than the trial demands; `reason` is CamelCase."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def prove_closed(addresses: Sequence[Address], patience: float) -> None:
    """Returns once a TCP connection to each address fails; a policy may need a moment to come.

    Raises NotIsolated when one still succeeds after `patience` seconds.
    """
    give_up = time.monotonic() + patience
    left = list(addresses)
    while left:
        open_now = await asyncio.gather(*(_reachable(address) for address in left))
        left = [address for address, reached in zip(left, open_now, strict=True) if reached]
        if left and time.monotonic() >= give_up:
            names = ", ".join(f"{host}:{port}" for host, port in left)
            raise NotIsolated(
                "IsolationNotEnforced",
                f"{names} can be reached from this pod and must not be: the cluster's network "
                "does not enforce NetworkPolicies here",
            )
        if left:
            await asyncio.sleep(BETWEEN_TRIES)


async def _reachable(address: Address) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(*address)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def user_namespace(uid_map: Path = Path("/proc/self/uid_map")) -> str:
    """The process's uid map in one line, `host` for the identity over the whole range."""
    lines = [line.split() for line in uid_map.read_text().splitlines()]
    if [["0", "0", str(WHOLE_RANGE)]] == lines:
        return "host"
    return "; ".join(" ".join(line) for line in lines)


def demand_user_namespace(setting: str, found: str) -> None:
    """Raises NotIsolated when a user namespace is required and `found` is none."""
    if setting == "required" and found == "host":
        raise NotIsolated(
            "UserNamespaceNotEnforced",
            "userNamespaces is required, but root in this pod is root on the node: the node's "
            "runtime ignores hostUsers: false (it needs containerd 2.0 or newer, or CRI-O)",
        )
