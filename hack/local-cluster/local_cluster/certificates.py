"""The cluster's own authority: keys, certificates and kubeconfigs, made once."""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from local_cluster.commands import run_logged
from local_cluster.settings import (
    API_SERVER,
    API_SERVICE_ADDRESS,
    NODE_ADDRESS,
    NODE_NAME,
    RUN_NAMESPACE,
    Places,
    write_file,
)

DAYS = "3650"


@dataclass(frozen=True)
class Subject:
    """Whom a client certificate speaks for."""

    file: str
    name: str
    group: str = ""

    @property
    def openssl(self) -> str:
        """The subject as openssl wants it."""
        return (f"/O={self.group}" if self.group else "") + f"/CN={self.name}"


ADMIN = "admin"
CLIENTS = (
    Subject(ADMIN, "admin", "system:masters"),
    Subject("kubelet", f"system:node:{NODE_NAME}", "system:nodes"),
    Subject("controller-manager", "system:kube-controller-manager"),
    Subject("scheduler", "system:kube-scheduler"),
    Subject("proxy", "system:kube-proxy"),
    Subject("router", "kube-router"),
    Subject("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
)
SERVER_NAMES = (
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    "DNS:kubernetes.default.svc.cluster.local",
    "IP:127.0.0.1",
    f"IP:{NODE_ADDRESS}",
    f"IP:{API_SERVICE_ADDRESS}",
)


def ensure_certificates(places: Places) -> None:
    """Make everything below `pki` unless it is there; all or nothing.

    The administrator's kubeconfig holds no key of its own: it is written again when it would be
    another one today.
    """
    target = places.certificates
    if target.exists():
        text = render_kubeconfig(target, ADMIN)
        if not places.kubeconfig.exists() or places.kubeconfig.read_text() != text:
            write_file(places.kubeconfig, text)
        return
    draft = target.with_name(".pki.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    log = places.logs / "step-certificates.log"
    authority = ["-x509", "-days", DAYS, "-subj", "/CN=stayer-local-cluster"]
    _openssl(log, ["req", *authority, *_new_key(draft / "ca")], draft / "ca.crt")
    for subject in CLIENTS:
        _sign(draft, log, subject.file, subject.openssl, ["extendedKeyUsage=clientAuth"])
    server = ["extendedKeyUsage=serverAuth", f"subjectAltName={','.join(SERVER_NAMES)}"]
    _sign(draft, log, "apiserver", "/CN=kube-apiserver", server)
    node = ["extendedKeyUsage=serverAuth", f"subjectAltName=DNS:{NODE_NAME},IP:{NODE_ADDRESS}"]
    _sign(draft, log, "kubelet-server", f"/CN={NODE_NAME}", node)
    _openssl(log, ["genrsa"], draft / "sa.key", ["2048"])
    _openssl(log, ["rsa", "-in", str(draft / "sa.key"), "-pubout"], draft / "sa.pub")
    for subject in CLIENTS:
        text = render_kubeconfig(draft, subject.file)
        (draft / f"{subject.file}.kubeconfig").write_text(text)
    for path in draft.iterdir():
        path.chmod(0o600)
    draft.rename(target)


def _new_key(stem: Path) -> list[str]:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    return [*curve, "-keyout", str(stem.with_suffix(".key"))]


def _sign(folder: Path, log: Path, file: str, subject: str, extensions: list[str]) -> None:
    request = folder / f"{file}.csr"
    _openssl(log, ["req", "-new", "-subj", subject, *_new_key(folder / file)], request)
    (folder / f"{file}.ext").write_text("\n".join(extensions) + "\n")
    command = ["x509", "-req", "-in", str(request), "-days", DAYS]
    command += ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key"), "-CAcreateserial"]
    command += ["-extfile", str(folder / f"{file}.ext")]
    _openssl(log, command, folder / f"{file}.crt")
    request.unlink()
    (folder / f"{file}.ext").unlink()


def _openssl(log: Path, arguments: list[str], output: Path, last: list[str] | None = None) -> None:
    command = ["openssl", *arguments, "-out", str(output), *(last or [])]
    run_logged(f"making {output.name}", command, log)


def render_kubeconfig(folder: Path, client: str) -> str:
    """A kubeconfig that holds its certificates, so that it may be copied elsewhere."""

    def embed(name: str) -> str:
        return base64.b64encode((folder / name).read_bytes()).decode()

    user = {
        "client-certificate-data": embed(f"{client}.crt"),
        "client-key-data": embed(f"{client}.key"),
    }
    cluster = {"server": API_SERVER, "certificate-authority-data": embed("ca.crt")}
    context = {"cluster": "stayer-local", "user": client}
    if client == ADMIN:  # a person's commands need no `-n` for runs and trials
        context["namespace"] = RUN_NAMESPACE
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "stayer-local", "cluster": cluster}],
        "users": [{"name": client, "user": user}],
        "contexts": [{"name": "stayer-local", "context": context}],
        "current-context": "stayer-local",
    }
    # JSON is YAML, and needs no library.
    return json.dumps(config, indent=2) + "\n"
