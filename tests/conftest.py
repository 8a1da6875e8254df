"""How tests run: hypothesis profiles, and where cluster tests belong."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Machines that build Kubernetes at the same time are slow; that is no defect of a test.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("STAYER_HYPOTHESIS", "default"))


def has_cluster() -> bool:
    """Whether the caller says that there is a cluster: `make test` does, after bringing it up."""
    return os.environ.get("STAYER_CLUSTER") == "1" or "STAYER_KUBECONFIG" in os.environ


def pytest_report_header() -> str:
    return "cluster tests: " + ("run" if has_cluster() else "left out (make test runs them)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a cluster its tests are deselected, not skipped: nothing pretends to have run."""
    if has_cluster():
        return
    left_out = [item for item in items if item.get_closest_marker("cluster")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("cluster")]
