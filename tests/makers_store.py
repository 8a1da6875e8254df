"""Object stores for tests, each behind the same asynchronous context manager."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx

from makers_relay import AGENT_PREFIX, make_relay_app, make_token, public_document
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.relay import RelayStore
from stayer_evaluator.storage.retry import RetryingMutableStore, RetryPolicy
from stayer_evaluator.storage.s3 import S3Store, make_client
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.storage.store import ObjectStore

PATIENT = RetryPolicy(deadline=20.0, first_wait=0.01, longest_wait=0.2)
OpenStore = Callable[[], AbstractAsyncContextManager[ObjectStore]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def moto_endpoint() -> Iterator[str]:
    """A moto S3 server on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def find_versitygw() -> str | None:
    """The S3 server of the local cluster: named, on PATH, or among its build products."""
    built = Path.home().glob(".cache/stayer/products/versitygw-*/bin/versitygw")
    return os.environ.get("VERSITYGW") or shutil.which("versitygw") or next(map(str, built), None)


@contextlib.contextmanager
def versitygw_endpoint(directory: Path) -> Iterator[str]:
    """A versitygw of our own over `directory`, with the keys of `use_test_keys`."""
    program = find_versitygw()
    assert program is not None, "no versitygw: make cluster-up builds one"
    for name in ("data", "iam"):
        (directory / name).mkdir()
    address = f"127.0.0.1:{free_port()}"
    command = [program, "--port", address, "--health", "/healthz", "--quiet", "--keep-alive"]
    process = subprocess.Popen(
        [*command, "--iam-dir", str(directory / "iam"), "posix", str(directory / "data")],
        env={"ROOT_ACCESS_KEY": "testing", "ROOT_SECRET_KEY": "testing"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_http(f"http://{address}/healthz")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def wait_for_http(url: str, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            pause.wait(0.02)


def make_bucket(endpoint: str) -> StoreSettings:
    """A new bucket at the endpoint."""
    settings = StoreSettings(bucket=f"test-{uuid.uuid4().hex[:12]}", endpoint=endpoint)
    client = make_client(settings)
    client.create_bucket(Bucket=settings.bucket)
    client.close()
    return settings


@contextlib.asynccontextmanager
async def open_memory() -> AsyncIterator[ObjectStore]:
    yield MemoryStore()


def s3_opener(endpoint: str) -> OpenStore:
    @contextlib.asynccontextmanager
    async def open_s3() -> AsyncIterator[ObjectStore]:
        inner = S3Store(make_bucket(endpoint))
        try:
            yield RetryingMutableStore(inner, PATIENT)
        finally:
            inner.close()

    return open_s3


@contextlib.asynccontextmanager
async def open_relay() -> AsyncIterator[ObjectStore]:
    """The relay's client and application joined in memory, over a memory store."""
    behind = MemoryStore({f"{AGENT_PREFIX}trial.json": public_document()})
    app, keys = make_relay_app(behind)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://relay") as client:
        yield RelayStore(client, lambda: make_token(keys), AGENT_PREFIX)
