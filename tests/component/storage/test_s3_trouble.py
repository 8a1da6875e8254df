"""The S3 adapter against a server that misbehaves (security.md F16-F20)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.retry import RetryingMutableStore, RetryPolicy
from stayer_evaluator.storage.s3 import PIECE, BucketMissing, S3Store
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.storage.store import AccessDenied, ObjectMissing, StoreError

Respond = Callable[["Handler"], None]
DATA = b"the bytes of an object"
META = {"x-amz-meta-sha256": hashlib.sha256(DATA).hexdigest()}


@dataclass
class Request:
    command: str
    path: str
    headers: Message
    body: bytes


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the next of the server's responses; the last one repeats."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        server = self.server
        assert isinstance(server, Server)
        server.seen.append(Request(self.command, self.path, self.headers, body))
        server.next_response()(self)

    do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815 (the library's names)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, responses: list[Respond]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.responses = responses
        self.seen: list[Request] = []

    def next_response(self) -> Respond:
        return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of these tests."""


def error(status: int, code: str) -> Respond:
    body = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()
    return lambda handler: handler.send(status, body, {"Content-Type": "application/xml"})


def good(handler: Handler) -> None:
    handler.send(200, DATA if handler.command == "GET" else b"", META)


def stalled(handler: Handler) -> None:
    """Half the body, then silence."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(DATA)))
    handler.end_headers()
    handler.wfile.write(DATA[:5])
    handler.wfile.flush()
    server = handler.server
    assert isinstance(server, Server)
    threading.Event().wait(3)


def truncated(handler: Handler) -> None:
    """Half the body, then the connection ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(DATA)))
    handler.end_headers()
    handler.wfile.write(DATA[:5])
    handler.close_connection = True


def reset(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.close()


def altered(handler: Handler) -> None:
    """As long as it should be, with one byte changed on the way."""
    handler.send(200, b"X" + DATA[1:], META)


@contextlib.contextmanager
def served(
    *responses: Respond, monkeypatch: pytest.MonkeyPatch, **changes: object
) -> Iterator[tuple[S3Store, Server]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    server = Server(list(responses))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    settings = StoreSettings(
        bucket="b",
        endpoint=f"http://127.0.0.1:{server.server_address[1]}",
        read_timeout=1.0,
        connect_timeout=1.0,
    )
    store = S3Store(settings)
    try:
        yield store, server
    finally:
        store.close()
        server.shutdown()
        thread.join()
        server.server_close()


def patient(store: S3Store) -> RetryingMutableStore:
    policy = RetryPolicy(deadline=30.0, first_wait=0.01, longest_wait=0.05)
    return RetryingMutableStore(store, policy)


PASSING = [
    ("throttled", error(503, "SlowDown")),
    ("an internal error", error(500, "InternalError")),
    ("two conditional writers at once", error(409, "ConditionalRequestConflict")),
    ("expired credentials", error(400, "ExpiredToken")),
    ("a clock that is off", error(403, "RequestTimeTooSkewed")),
    ("a reset connection", reset),
]


@pytest.mark.parametrize("trouble", [pytest.param(t, id=i) for i, t in PASSING])
def test_trouble_that_passes_is_tried_again(
    trouble: Respond, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(trouble, trouble, good, monkeypatch=monkeypatch) as (store, server):
        one_try = store.create("k", DATA)
        with pytest.raises(StoreError) as caught:
            asyncio.run(one_try)
        assert caught.value.retryable

        assert asyncio.run(patient(store).create("k", DATA)) is True
        assert len(server.seen) == 3  # the SDK itself has repeated nothing


READING = [("stalled", stalled), ("truncated", truncated), ("reset", reset)]


@pytest.mark.parametrize("trouble", [pytest.param(t, id=i) for i, t in READING])
def test_a_read_that_is_cut_off_is_never_taken_for_the_whole(
    trouble: Respond, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(trouble, good, monkeypatch=monkeypatch) as (store, _):
        started = time.monotonic()

        assert asyncio.run(patient(store).get("k")) == DATA

        assert time.monotonic() - started < 20


def test_a_stream_that_is_cut_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(store: S3Store) -> bytes:
        return b"".join([piece async for piece in store.stream("k")])

    with served(truncated, monkeypatch=monkeypatch) as (store, _), pytest.raises(StoreError):
        asyncio.run(read(store))


def test_altered_bytes_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(store: S3Store) -> bytes:
        return b"".join([piece async for piece in store.stream("k")])

    with served(altered, monkeypatch=monkeypatch) as (store, _):
        with pytest.raises(CorruptObject):
            asyncio.run(store.get("k"))
        with pytest.raises(CorruptObject):
            asyncio.run(read(store))


LASTING = [
    ("no right", error(403, "AccessDenied"), AccessDenied),
    ("a wrong key", error(403, "InvalidAccessKeyId"), AccessDenied),
    ("no bucket", error(404, "NoSuchBucket"), BucketMissing),
    ("no object", error(404, "NoSuchKey"), ObjectMissing),
]


@pytest.mark.parametrize(
    ("trouble", "kind"), [pytest.param(t, kind, id=i) for i, t, kind in LASTING]
)
def test_trouble_that_lasts_is_not_repeated(
    trouble: Respond, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(trouble, monkeypatch=monkeypatch) as (store, server):
        with pytest.raises(kind):
            asyncio.run(patient(store).get("k"))
        assert len(server.seen) == 1


def test_a_lost_answer_is_recognised_by_its_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = error(412, "PreconditionFailed")
    with served(reset, taken, good, monkeypatch=monkeypatch) as (store, server):
        assert asyncio.run(patient(store).create("k", DATA)) is True

        assert [request.command for request in server.seen] == ["PUT", "PUT", "GET"]


@pytest.mark.parametrize("data", [DATA, bytes(PIECE + 1)], ids=["small", "large"])
def test_what_is_sent(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Conditional, signed over the body, with our own hash and no checksum dialect (F20)."""
    with served(good, monkeypatch=monkeypatch) as (store, server):
        asyncio.run(store.create("runs/x", data))

    headers = server.seen[0].headers
    digest = hashlib.sha256(data).hexdigest()
    assert server.seen[0].path == "/b/runs/x"
    assert server.seen[0].body == data
    assert headers["If-None-Match"] == "*"
    assert headers["x-amz-content-sha256"] == digest
    assert headers["x-amz-meta-sha256"] == digest
    assert not [name for name in headers if name.lower().startswith("x-amz-checksum")]


def test_only_large_bodies_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one is sent at once: no round trip to ask whether it may be."""
    with served(good, monkeypatch=monkeypatch) as (store, server):
        asyncio.run(store.put("small", DATA))
        asyncio.run(store.put("large", bytes(PIECE + 1)))

    assert [request.headers["Expect"] for request in server.seen] == [None, "100-continue"]


def test_a_server_that_is_not_there_is_trouble_that_may_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    store = S3Store(StoreSettings(bucket="b", endpoint="http://127.0.0.1:9", connect_timeout=1.0))

    with pytest.raises(StoreError) as caught:
        asyncio.run(store.get("k"))

    assert caught.value.retryable
    store.close()
