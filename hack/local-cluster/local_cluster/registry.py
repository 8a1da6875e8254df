"""The local image registry: its configuration, and the few calls that are made to it."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from pathlib import Path

from local_cluster.errors import LocalClusterError

MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


def render_config(storage: Path, port: int) -> str:
    """The registry's configuration: loopback only, files below `storage`, tags deletable."""
    return f"""\
version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: {storage}
  delete:
    enabled: true
  maintenance:
    uploadpurging:
      enabled: true
      age: 24h
      interval: 24h
      dryrun: false
http:
  addr: 127.0.0.1:{port}
"""


def is_answering(port: int) -> bool:
    """Whether a registry answers on the port."""
    try:
        return _call(port, "GET", "/v2/").status == 200
    except OSError:
        return False


def has_manifest(port: int, name: str, tag: str) -> bool:
    """Whether the registry holds the image under this tag."""
    return _digest(port, name, tag) is not None


def copy_tag(port: int, name: str, source: str, target: str) -> None:
    """Make one tag name the image that another tag names; writes only if it does not yet."""
    if _digest(port, name, source) == _digest(port, name, target):
        return
    manifest = _call(port, "GET", _path(name, source))
    put = _call(port, "PUT", _path(name, target), manifest.body, manifest.kind)
    if put.status != 201:
        raise LocalClusterError(
            f"the registry answered {put.status} when {name}:{target} was tagged",
            advice="`cluster logs registry` shows why",
        )


@dataclass(frozen=True)
class _Answer:
    status: int
    digest: str
    kind: str
    body: bytes


def _digest(port: int, name: str, tag: str) -> str | None:
    answer = _call(port, "HEAD", _path(name, tag))
    return answer.digest if answer.status == 200 else None


def _path(name: str, tag: str) -> str:
    return f"/v2/{name}/manifests/{tag}"


def _call(port: int, method: str, path: str, body: bytes | None = None, kind: str = "") -> _Answer:
    # Not urllib: it would take a loopback address to the machine's HTTP proxy.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Accept": ", ".join(MANIFEST_TYPES)} | ({"Content-Type": kind} if kind else {})
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        found = response.headers
        return _Answer(
            status=response.status,
            digest=found.get("Docker-Content-Digest", ""),
            kind=found.get("Content-Type", ""),
            body=response.read(),
        )
    finally:
        connection.close()
