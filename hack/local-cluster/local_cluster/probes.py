"""Asks the cluster's processes whether they are well. Every probe answers at once."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from local_cluster.errors import LocalClusterError
from local_cluster.settings import NODE_ADDRESS, Places

TIMEOUT = 3.0
Probe = Callable[[], bool]


def answers_http(port: int, path: str, host: str = "127.0.0.1") -> bool:
    """Whether plain HTTP answers 200."""
    return _answers(http.client.HTTPConnection(host, port, timeout=TIMEOUT), path)


def answers_https(port: int, path: str) -> bool:
    """Whether HTTPS on loopback answers 200; such servers sign their own certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _answers(
        http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT, context=context), path
    )


def api_server_is_ready(places: Places) -> bool:
    """Whether the API server, known by its certificate, says that it is ready."""
    folder = places.certificates
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    except OSError:
        return False
    connection = http.client.HTTPSConnection(NODE_ADDRESS, 6443, timeout=TIMEOUT, context=context)
    return _answers(connection, "/readyz")


def accepts_connections(path: Path) -> bool:
    """Whether somebody listens on a unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def accepts_tcp(address: str, port: int) -> bool:
    """Whether somebody listens on a TCP port."""
    try:
        socket.create_connection((address, port), timeout=TIMEOUT).close()
    except OSError:
        return False
    return True


def wait_for(
    what: str, probe: Probe, patience: float, *, log: Path | None = None, alive: Probe | None = None
) -> None:
    """Wait until the probe says yes; raise if it does not in time or its process has ended."""
    deadline = time.monotonic() + patience
    while not probe():
        if alive is not None and not alive():
            raise LocalClusterError(f"{what}: it has ended", log=log, advice="see the log")
        if time.monotonic() > deadline:
            advice = "a very busy machine may need a second try; otherwise see the log"
            raise LocalClusterError(f"{what} within {patience:.0f} s", log=log, advice=advice)
        time.sleep(0.1)


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
