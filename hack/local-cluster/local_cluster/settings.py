"""Where things are kept, and the fixed addresses of the cluster."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
"""The directory that holds the `cluster` program, its manifests and Go sources."""

NODE_NAME = "local"
# A link of our own carries it: a machine may have no address besides loopback, and one
# that has should not offer the API server on it.
NODE_ADDRESS = "10.97.0.1"
NODE_LINK = "stayer-node"
BRIDGE = "stayer-br0"
POD_NETWORK = "10.244.0.0/16"
# What the controller manager gives to the first node; simulated nodes get the other 255.
NODE_POD_NETWORK = "10.244.0.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
S3_ADDRESS = "10.96.0.20"
S3_PORT = 7070
PROMETHEUS_ADDRESS = "10.96.0.30"
PROMETHEUS_PORT = 9090
BUCKET = "stayer"
INFRA_NAMESPACE = "local-infra"
# Where the chart has runs applied if its values say nothing else.
RUN_NAMESPACE = "stayer-runs"
API_SERVER = f"https://{NODE_ADDRESS}:6443"
DEFAULT_REGISTRY_PORT = 5000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the user chose at the first `up`; kept in the state directory until `down`."""

    kubernetes_version: str
    registry_port: int


@dataclass(frozen=True)
class Places:
    """The two directories of the cluster: `state` lives until `down`, `cache` stays."""

    state: Path
    cache: Path

    @property
    def bin(self) -> Path:
        """Links to every program of the cluster; the PATH of its processes begins with it."""
        return self.state / "bin"

    @property
    def logs(self) -> Path:
        """One file for each process of the cluster."""
        return self.state / "logs"

    @property
    def build_logs(self) -> Path:
        """One file for each thing that is built or fetched; in the cache, like the things."""
        return self.cache / "logs"

    @property
    def config(self) -> Path:
        """Rendered configuration files."""
        return self.state / "config"

    @property
    def certificates(self) -> Path:
        """Keys, certificates and kubeconfigs."""
        return self.state / "pki"

    @property
    def processes(self) -> Path:
        """One record for each process that was started."""
        return self.state / "processes"

    @property
    def run(self) -> Path:
        """What lives no longer than the processes: sockets, root file systems of containers.

        Below /run for two reasons: root of a pod with its own user namespace must be able to
        reach its root file system, and a home directory is closed to it; and the path of a
        unix socket may have 107 characters only.
        """
        return Path("/run") / self.unique_name

    @property
    def unique_name(self) -> str:
        """A name for what is outside of the state directory: no other directory has it."""
        return f"stayer-cluster-{hashlib.sha256(str(self.state).encode()).hexdigest()[:8]}"

    @property
    def containerd_socket(self) -> Path:
        """Where the kubelet finds the container runtime."""
        return self.run / "containerd.sock"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.certificates / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """What the API server was asked, one JSON object a line."""
        return self.state / "audit" / "audit.log"

    @property
    def s3_data(self) -> Path:
        """The S3 server's files: they outlive its pod."""
        return self.state / "s3"

    @property
    def registry_storage(self) -> Path:
        """The registry's files: in the cache, so that images outlive the cluster."""
        return self.cache / "registry"

    def load_choices(self) -> Choices | None:
        """The choices of the cluster in this state directory; None if there is none."""
        path = self.state / "choices.json"
        return Choices(**json.loads(path.read_text())) if path.exists() else None

    def save_choices(self, choices: Choices) -> None:
        """Remember the choices for later commands."""
        write_file(self.state / "choices.json", json.dumps(asdict(choices)) + "\n")


def find_places(state: str | None, environ: Mapping[str, str]) -> Places:
    """The directories by option, environment or default, as absolute paths."""
    home = Path(environ.get("HOME", "/root"))
    state_dir = state or environ.get("STAYER_CLUSTER_STATE") or home / ".local/state/stayer/cluster"
    cache_dir = environ.get("STAYER_CACHE") or home / ".cache/stayer"
    return Places(Path(state_dir).absolute(), Path(cache_dir).absolute())


def write_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a whole file or nothing: a kill in between leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    draft.rename(path)
