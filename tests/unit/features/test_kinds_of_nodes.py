"""Which nodes an answer depends on: those that a probe pod may come to, whatever their state."""

from __future__ import annotations

from typing import Any

import pytest

from stayer_operator.core.features.pod import node_runtimes
from stayer_operator.core.projection import node_view

INFO = {
    "architecture": "amd64",
    "containerRuntimeVersion": "containerd://2.1.0",
    "kernelVersion": "6.18",
    "kubeletVersion": "v1.37.2",
    "machineID": "differs from node to node",
}
KIND = "containerd://2.1.0 v1.37.2 6.18 amd64"


def make_node(info: dict[str, str] = INFO, taints: list[dict[str, str]] | None = None) -> Any:
    return {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"},
        "spec": {"taints": taints} if taints else {},
        "status": {"nodeInfo": info},
    }


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        pytest.param(make_node(), KIND, id="any node"),
        pytest.param(
            make_node(taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            KIND,
            id="one that is not ready just now",
        ),
        pytest.param(
            make_node(taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]),
            KIND,
            id="one that others should get first",
        ),
        pytest.param(
            make_node(taints=[{"key": "gpu", "effect": "NoSchedule"}]), "", id="one for others"
        ),
        pytest.param(
            make_node(
                taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
            ),
            "",
            id="one of the control plane",
        ),
        pytest.param({"metadata": {"name": "n"}}, "", id="one that said nothing yet"),
    ],
)
def test_kind_of_a_node(node: Any, kind: str) -> None:
    assert node_view(node).runtime == kind


def test_equal_nodes_count_once_and_reserved_ones_not() -> None:
    assert node_runtimes(["b", "a", "", "b"]) == ("a", "b")
