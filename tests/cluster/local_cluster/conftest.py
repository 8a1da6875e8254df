"""One namespace of the running local cluster for all tests here."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator

import pytest

from makers_local_cluster import CLUSTER, LocalCluster, wait_until


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """The running cluster, with a namespace that is removed afterwards."""
    if "STAYER_KUBECONFIG" in os.environ:
        pytest.skip("STAYER_KUBECONFIG is set: there is no local cluster to test")
    printed = subprocess.run([CLUSTER, "env"], capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    env = dict(line.split("=", 1) for line in printed.stdout.splitlines())
    found = LocalCluster(env, f"local-cluster-test-{secrets.token_hex(3)}")
    found.kubectl("create", "namespace", found.namespace)
    # Pods are refused before the namespace has its service account.
    account = ("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")
    wait_until(lambda: bool(found.kubectl(*account)), "the namespace's service account")
    yield found
    found.kubectl("delete", "namespace", found.namespace, "--wait=false")
