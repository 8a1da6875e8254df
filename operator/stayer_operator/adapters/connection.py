"""Where the API server is and how to prove who we are: in-cluster files or a kubeconfig.

A token file is read again after `TOKEN_RELOAD_SECONDS`, because the kubelet replaces projected
tokens before they expire.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stayer_operator.errors import SettingsError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_RELOAD_SECONDS = 60.0


class TokenFile:
    """A bearer token kept in a file that others replace."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")

    def __call__(self) -> str:
        """The newest token, at most `TOKEN_RELOAD_SECONDS` old."""
        if self._clock() - self._read_at >= TOKEN_RELOAD_SECONDS:
            self.reload()
        return self._token

    def reload(self) -> None:
        """Read the file now; after a 401."""
        self._token = self._path.read_text().strip()
        self._read_at = self._clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An API server and our credentials for it."""

    server: str
    tls: ssl.SSLContext | None
    token: TokenFile | None = None
    namespace: str = "default"
    ca_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None

    def headers(self) -> dict[str, str]:
        """The Authorization header, if a token is what we have."""
        return {"Authorization": f"Bearer {self.token()}"} if self.token else {}


def find_connection(env: Mapping[str, str]) -> Connection:
    """In-cluster configuration where there is one, else the kubeconfig.

    Raises SettingsError naming what was looked for when there is neither.
    """
    if "KUBECONFIG" not in env and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster(env)
    path = Path(env.get("KUBECONFIG") or Path.home() / ".kube/config")
    return from_kubeconfig(path)


def in_cluster(env: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection that the kubelet gives to a pod with a service-account token."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise SettingsError(
            "KUBERNETES_SERVICE_HOST is not set; found a service-account token, so this should be "
            "a pod, where the kubelet sets it"
        )
    if ":" in host:
        host = f"[{host}]"
    return Connection(
        server=f"https://{host}:{port}",
        tls=ssl.create_default_context(cafile=str(account / "ca.crt")),
        token=TokenFile(account / "token"),
        namespace=(account / "namespace").read_text().strip(),
        ca_path=str(account / "ca.crt"),
    )


def from_kubeconfig(path: Path) -> Connection:
    """The current context of a kubeconfig: certificates, a token or a token file.

    Raises SettingsError for a missing file, a missing part or a credential plugin, which would
    need programs that the operator's image does not have.
    """
    try:
        document = yaml.safe_load(path.read_text()) or {}
    except OSError as error:
        raise SettingsError(f"kubeconfig {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"kubeconfig {path}: not YAML: {error}") from error
    context = _named(document, "contexts", document.get("current-context"), "context", path)
    cluster = _named(document, "clusters", context.get("cluster"), "cluster", path)
    user = _named(document, "users", context.get("user"), "user", path)
    return _connect(cluster, user, context.get("namespace") or "default", path)


def _connect(
    cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str, path: Path
) -> Connection:
    if "exec" in user or "auth-provider" in user:
        raise SettingsError(
            f"kubeconfig {path}: the user has a credential plugin; accepted are "
            "client-certificate[-data], token and tokenFile"
        )
    ca = _as_file(cluster, "certificate-authority", path)
    certificate = _as_file(user, "client-certificate", path)
    key = _as_file(user, "client-key", path)
    server = str(cluster.get("server", "")).rstrip("/")
    tls: ssl.SSLContext | None = None
    if server.startswith("https:"):
        tls = ssl.create_default_context(cafile=ca)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if certificate:
            tls.load_cert_chain(certificate, key)
    return Connection(
        server=server,
        tls=tls,
        token=_token(user, path),
        namespace=namespace,
        ca_path=ca,
        certificate_path=certificate,
        key_path=key,
    )


def _named(
    document: Mapping[str, Any], section: str, name: object, key: str, path: Path
) -> Mapping[str, Any]:
    for entry in document.get(section) or ():
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry.get(key) or {}
            return found
    known = ", ".join(str(entry.get("name")) for entry in document.get(section) or ()) or "none"
    raise SettingsError(f"kubeconfig {path}: {section} has no {name!r}; it has: {known}")


def _as_file(section: Mapping[str, Any], key: str, path: Path) -> str | None:
    """The file of a certificate or key; inlined data goes to a private temporary file."""
    if data := section.get(f"{key}-data"):
        return _keep(base64.b64decode(data))
    if name := section.get(key):
        return str(path.parent / name)
    return None


def _token(user: Mapping[str, Any], path: Path) -> TokenFile | None:
    if name := user.get("tokenFile"):
        return TokenFile(path.parent / name)
    if token := user.get("token"):
        return TokenFile(Path(_keep(str(token).encode())))
    return None


def _keep(data: bytes) -> str:
    # ssl reads certificates from files only; the directory is the process's own (mode 0700).
    folder = tempfile.mkdtemp(prefix="stayer-kubeconfig-")
    target = Path(folder) / "data"
    target.write_bytes(data)
    return str(target)
