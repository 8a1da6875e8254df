"""One namespace of the running local cluster for all tests here."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from makers_local_cluster import CLUSTER, LocalCluster, wait_until

IMAGE_VOLUMES = 35  # the minor version from which on they are not behind a feature gate


def read_env() -> dict[str, str]:
    """What `cluster env` prints."""
    printed = subprocess.run([CLUSTER, "env"], capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    return dict(line.split("=", 1) for line in printed.stdout.splitlines())


@pytest.hookimpl(trylast=True)  # after the tests that need a cluster were left out without one
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A cluster of one's own is not tested, nor what the local one's Kubernetes has not."""
    mine = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    left_out = mine
    if "STAYER_KUBECONFIG" not in os.environ:
        left_out = [item for item in mine if item.get_closest_marker("image_volumes")]
        if not left_out or LocalCluster(read_env(), "").kubernetes_minor() >= IMAGE_VOLUMES:
            return
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """The running cluster, with a namespace that is removed afterwards."""
    found = LocalCluster(read_env(), f"local-cluster-test-{secrets.token_hex(3)}")
    found.kubectl("create", "namespace", found.namespace)
    # Pods are refused before the namespace has its service account.
    account = ("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")
    wait_until(lambda: bool(found.kubectl(*account)), "the namespace's service account")
    yield found
    found.kubectl("delete", "namespace", found.namespace, "--wait=false")
