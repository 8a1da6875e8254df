"""How tests run: hypothesis profiles, and where cluster tests belong."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

from makers_chart import find_helm

# Machines that build Kubernetes at the same time are slow; that is no defect of a test.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("STAYER_HYPOTHESIS", "default"))


def has_cluster() -> bool:
    """Whether the caller says that there is a cluster: `make test` does, after bringing it up."""
    return os.environ.get("STAYER_CLUSTER") == "1" or "STAYER_KUBECONFIG" in os.environ


def missing() -> dict[str, str]:
    """Markers whose tests cannot run here, and why."""
    reasons = {}
    if not has_cluster():
        reasons["cluster"] = "no cluster (make test starts one)"
    if find_helm() is None:
        reasons["helm"] = "no helm (make cluster-up brings one)"
    if shutil.which("node") is None:
        reasons["node"] = "no node (apt install nodejs)"
    return reasons


def pytest_report_header() -> list[str]:
    return [f"{marker} tests are left out: {reason}" for marker, reason in missing().items()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What cannot run here is deselected, not skipped: nothing pretends to have run."""
    markers = list(missing())
    left_out = [i for i in items if any(i.get_closest_marker(name) for name in markers)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
