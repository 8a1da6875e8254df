"""What is plugged into a bridge of ours goes with it."""

from __future__ import annotations

from pathlib import Path

from local_cluster.network import bridge_ports


def test_links_in_a_bridge_are_found(tmp_path: Path) -> None:
    for name in ("veth2", "veth1"):
        (tmp_path / "cni0/brif" / name).mkdir(parents=True)

    assert [port.name for port in bridge_ports("cni0", tmp_path)] == ["veth1", "veth2"]


def test_a_bridge_that_is_gone_has_none(tmp_path: Path) -> None:
    assert bridge_ports("cni0", tmp_path) == []
