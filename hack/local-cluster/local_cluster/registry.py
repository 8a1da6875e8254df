"""The local image registry: its configuration, and the few calls that are made to it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

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
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=2) as response:  # noqa: S310
            return bool(response.status == 200)
    except OSError:
        return False


def has_manifest(port: int, name: str, tag: str) -> bool:
    """Whether the registry holds the image under this tag."""
    return _digest(port, name, tag) is not None


def copy_tag(port: int, name: str, source: str, target: str) -> None:
    """Make one tag name the image that another tag names; writes only if it does not yet."""
    if _digest(port, name, source) == _digest(port, name, target):
        return
    with urllib.request.urlopen(_request(port, name, source), timeout=10) as response:  # noqa: S310
        manifest = response.read()
        kind = response.headers["Content-Type"]
    put = _request(port, name, target, method="PUT", data=manifest)
    put.add_header("Content-Type", kind)
    urllib.request.urlopen(put, timeout=10).close()  # noqa: S310


def _digest(port: int, name: str, tag: str) -> str | None:
    try:
        head = _request(port, name, tag, method="HEAD")
        with urllib.request.urlopen(head, timeout=10) as response:  # noqa: S310
            return str(response.headers["Docker-Content-Digest"])
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def _request(
    port: int, name: str, tag: str, *, method: str = "GET", data: bytes | None = None
) -> urllib.request.Request:
    url = f"http://127.0.0.1:{port}/v2/{name}/manifests/{tag}"
    headers = {"Accept": ", ".join(MANIFEST_TYPES)}
    return urllib.request.Request(url, method=method, data=data, headers=headers)  # noqa: S310
