"""A cluster of the user's own, named by STAYER_KUBECONFIG: checked, never changed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from local_cluster.errors import LocalClusterError
from local_cluster.kubectl import Kubectl
from local_cluster.settings import Places

VARIABLE = "STAYER_KUBECONFIG"
# What the user's own cluster cannot tell: they name it, and `env` hands it on.
HANDED_ON = (
    "STAYER_REGISTRY",
    "STAYER_S3_ENDPOINT",
    "STAYER_S3_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "STAYER_S3_SECRET_KEY",
    "STAYER_S3_BUCKET",
    "STAYER_PROMETHEUS_URL",
    "STAYER_AUDIT_LOG",
)


def find_external(environ: Mapping[str, str], places: Places) -> Kubectl | None:
    """The user's own cluster; None if they named none."""
    named = environ.get(VARIABLE)
    if not named:
        return None
    kubeconfig = Path(named).expanduser().absolute()
    if not kubeconfig.is_file():
        raise LocalClusterError(f"{VARIABLE} names {kubeconfig}, which is no file")
    ours = places.bin / "kubectl"
    program = str(ours) if ours.exists() else shutil.which("kubectl")
    if program is None:
        raise LocalClusterError(
            f"{VARIABLE} is set, but there is no kubectl to reach that cluster",
            advice="put kubectl into PATH",
        )
    return Kubectl(Path(program), kubeconfig)


def check_external(kubectl: Kubectl) -> str:
    """Say which cluster is used; raise if it does not answer."""
    if not kubectl.is_reachable():
        raise LocalClusterError(
            f"the cluster of {VARIABLE}={kubectl.kubeconfig} does not answer",
            advice=f"see what `kubectl get nodes` says there, or unset {VARIABLE}",
        )
    return f"using the cluster of {VARIABLE}={kubectl.kubeconfig}: nothing is built or started"


def describe_external(kubectl: Kubectl, environ: Mapping[str, str]) -> dict[str, str]:
    """What `env` prints for the user's own cluster: as far as they or it can tell."""
    known = {
        "KUBECONFIG": str(kubectl.kubeconfig),
        "STAYER_BIN": str(kubectl.program.parent),
    }
    nodes = kubectl.read("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
    if nodes:
        known["STAYER_NODE"] = nodes[0]
    return known | {name: environ[name] for name in HANDED_ON if environ.get(name)}
