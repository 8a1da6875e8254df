"""The cluster's own pods: DNS, the S3 server and Prometheus."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from string import Template

from local_cluster.kubectl import Kubectl
from local_cluster.probes import accepts_tcp, wait_for
from local_cluster.s3 import Credentials, ensure_bucket
from local_cluster.settings import (
    BUCKET,
    DNS_ADDRESS,
    INFRA_NAMESPACE,
    NODE_NAME,
    PROMETHEUS_ADDRESS,
    PROMETHEUS_PORT,
    S3_ADDRESS,
    S3_PORT,
    SOURCE,
    Places,
    write_file,
)

SERVICES = {
    "dns": (DNS_ADDRESS, 53),
    "s3": (S3_ADDRESS, S3_PORT),
    "prometheus": (PROMETHEUS_ADDRESS, PROMETHEUS_PORT),
}
S3_USER = 65532
PATIENCE = 120
SERVICE_PATIENCE = 20


def load_credentials(places: Places) -> Credentials:
    """The S3 root account of this state directory, made up at the first call."""
    path = places.state / "s3-credentials.json"
    if not path.exists():
        made = {"access_key": secrets.token_hex(10), "secret_key": secrets.token_hex(20)}
        write_file(path, json.dumps(made) + "\n")
    return Credentials(**json.loads(path.read_text()))


def ensure_s3_directories(places: Places) -> None:
    """Make the directories that the S3 server's pod mounts, owned by its user."""
    for path in (places.s3_data, places.s3_data / "data", places.s3_data / "iam"):
        path.mkdir(mode=0o750, exist_ok=True)
        os.chown(path, S3_USER, S3_USER)


def render_manifests(places: Places, images: Mapping[str, str]) -> str:
    """All objects of the cluster itself, as one YAML stream."""
    values = {
        "namespace": INFRA_NAMESPACE,
        "dns_address": DNS_ADDRESS,
        "s3_address": S3_ADDRESS,
        "s3_port": str(S3_PORT),
        "s3_data": str(places.s3_data),
        "dns_forward": render_forward(Path("/etc/resolv.conf").read_text()),
        "prometheus_address": PROMETHEUS_ADDRESS,
        "prometheus_port": str(PROMETHEUS_PORT),
        **images,
    }
    folder = SOURCE / "manifests"
    names = ("rbac", *SERVICES)
    texts = [Template((folder / f"{name}.yaml").read_text()).substitute(values) for name in names]
    return "\n---\n".join(texts)


def render_forward(resolv_conf: str) -> str:
    """The Corefile line that hands other names to the machine's resolvers.

    Empty if it has none, or only such on its loopback, which pods cannot reach: CoreDNS does
    not start with nobody to forward to.
    """
    words = [line.split() for line in resolv_conf.splitlines()]
    servers = [fields[1] for fields in words if len(fields) > 1 and fields[0] == "nameserver"]
    reachable = [server for server in servers if not server.startswith(("127.", "::1"))]
    return f"forward . {' '.join(reachable)}" if reachable else ""


def render_secret(credentials: Credentials) -> str:
    """The Secret that the S3 server reads its root account from."""
    root = {
        "ROOT_ACCESS_KEY": credentials.access_key,
        "ROOT_SECRET_KEY": credentials.secret_key,
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s3-root", "namespace": INFRA_NAMESPACE},
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in root.items()},
    }
    return json.dumps(secret)


def apply_infra(places: Places, kubectl: Kubectl, images: Mapping[str, str]) -> None:
    """Create or update the objects of the pods; those that are right already are left alone."""
    secret = render_secret(load_credentials(places))
    kubectl.apply(f"{render_manifests(places, images)}\n---\n{secret}\n")


def await_infra(places: Places, kubectl: Kubectl) -> None:
    """Wait until the pods serve, and make the bucket."""
    for name in SERVICES:
        await_service(kubectl, name)
    ensure_bucket(S3_ADDRESS, S3_PORT, BUCKET, load_credentials(places))


def await_service(kubectl: Kubectl, name: str) -> None:
    """Wait until the pod is ready and its service's address leads to it."""
    kubectl.wait_for_rollout(INFRA_NAMESPACE, name, PATIENCE)
    # The pod is ready a moment before the proxy has made its rules.
    address, port = SERVICES[name]
    what = f"{name} does not answer at {address}:{port}"
    wait_for(what, lambda: accepts_tcp(address, port), SERVICE_PATIENCE)


def stop_deployment(kubectl: Kubectl, name: str) -> None:
    """Scale to nothing and wait until the pod is gone."""
    kubectl.read("scale", "-n", INFRA_NAMESPACE, f"deployment/{name}", "--replicas=0")
    selector = ("-n", INFRA_NAMESPACE, "-l", f"app={name}")
    kubectl.read("wait", "pod", *selector, "--for=delete", f"--timeout={PATIENCE}s")


def start_deployment(kubectl: Kubectl, name: str) -> None:
    """Scale back to one pod and wait until it is ready."""
    kubectl.read("scale", "-n", INFRA_NAMESPACE, f"deployment/{name}", "--replicas=1")
    await_service(kubectl, name)


def describe_environment(places: Places, registry_port: int) -> dict[str, str]:
    """What a user of the cluster needs to know, as environment variables."""
    credentials = load_credentials(places)
    return {
        "KUBECONFIG": str(places.kubeconfig),
        "STAYER_REGISTRY": f"127.0.0.1:{registry_port}",
        "STAYER_S3_ENDPOINT": f"http://{S3_ADDRESS}:{S3_PORT}",
        "STAYER_S3_ACCESS_KEY": credentials.access_key,
        # Under the names that every S3 program knows.
        "AWS_ACCESS_KEY_ID": credentials.access_key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        "STAYER_S3_SECRET_KEY": credentials.secret_key,
        "STAYER_S3_BUCKET": BUCKET,
        "STAYER_PROMETHEUS_URL": f"http://{PROMETHEUS_ADDRESS}:{PROMETHEUS_PORT}",
        "STAYER_AUDIT_LOG": str(places.audit_log),
        "STAYER_CLUSTER_STATE": str(places.state),
        "STAYER_BIN": str(places.bin),
        "STAYER_NODE": NODE_NAME,
        "STAYER_DNS_NAMESPACE": INFRA_NAMESPACE,
    }


def render_environment(variables: Mapping[str, str]) -> str:
    """`KEY=VALUE` lines that a shell and make can both read."""
    return "".join(f"{key}={value}\n" for key, value in variables.items())
