"""The relay's HTTP face: authenticate, find the trial, ask the policy, pass the bytes."""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pydantic
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.relay import policy
from stayer_evaluator.relay.metrics import RelayMetrics
from stayer_evaluator.relay.tokens import (
    KeysUnavailable,
    TokenRejected,
    TokenVerifier,
    TrialPod,
    trial_pod,
)
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.relay import PREFIX_HEADER
from stayer_evaluator.storage.store import (
    ObjectExists,
    ObjectMissing,
    ObjectStore,
    StoreError,
)

MAX_OBJECT = 512 * 1024**2
MAX_IN_FLIGHT = 512 * 1024**2
MAX_DOCUMENTS = 10_000
RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{1,15})")


class Refused(Exception):  # noqa: N818 (an answer, not a failure)
    """An answer other than success."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Documents:
    """Trial documents by prefix. They never change, so what was read once is kept."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: OrderedDict[str, TrialDocument] = OrderedDict()

    async def find(self, caller: TrialPod, prefix: str) -> TrialDocument:
        """The document of the caller's trial, which must lie at `prefix`. Raises Refused."""
        if not policy.is_plain(prefix.rstrip("/")) or not policy.belongs(caller, prefix):
            raise Refused(403, "outside the trial and its task")
        document = self._known.get(prefix)
        if document is None:
            document = await self._read(prefix)
            self._known[prefix] = document
            if len(self._known) > MAX_DOCUMENTS:
                self._known.popitem(last=False)
        self._known.move_to_end(prefix)
        if document.prefix != prefix:
            raise Refused(403, "the trial's document names another prefix")
        return document

    async def _read(self, prefix: str) -> TrialDocument:
        try:
            return TrialDocument.from_bytes(await self._store.get(TrialKeys(prefix).document))
        except ObjectMissing as error:
            raise Refused(403, "no such trial") from error
        except pydantic.ValidationError as error:
            raise Refused(403, "the trial's document cannot be read") from error


class InFlight:
    """Bounds the bytes of bodies held at once; whoever comes later waits."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes; a body larger than the limit goes alone."""
        async with self._freed:
            await self._freed.wait_for(lambda: not self._used or self._used + size <= self._limit)
            self._used += size
        try:
            yield
        finally:
            async with self._freed:
                self._used -= size
                self._freed.notify_all()


class Relay:
    """The endpoints. Make the ASGI application with `make_app`."""

    def __init__(
        self,
        store: ObjectStore,
        verifier: TokenVerifier,
        metrics: RelayMetrics,
        *,
        max_object: int = MAX_OBJECT,
    ) -> None:
        self.store = store
        self.verifier = verifier
        self.metrics = metrics
        self.max_object = max_object
        self.documents = Documents(store)
        self.in_flight = InFlight(MAX_IN_FLIGHT)

    async def objects(self, request: Request) -> Response:
        """PUT and GET of /v1/objects/<key>."""
        started = time.monotonic()
        role = "none"
        try:
            caller = await self._authenticate(request)
            role = caller.role.name.lower()
            serve = self._create if request.method == "PUT" else self._read
            response = await serve(request, caller, request.path_params["key"])
        except Refused as refused:
            response = PlainTextResponse(refused.reason, refused.status)
        except ObjectMissing:
            response = PlainTextResponse("no such object", 404)
        except ObjectExists:
            response = PlainTextResponse("other bytes are there", 412)
        except (StoreError, KeysUnavailable) as error:
            self.metrics.store_errors.labels(type(error).__name__).inc()
            response = PlainTextResponse(f"store: {type(error).__name__}", 503)
        except ClientDisconnect:
            response = PlainTextResponse("gone", 499)
        self.metrics.requests.labels(request.method, role, str(response.status_code)).inc()
        self.metrics.seconds.labels(request.method).observe(time.monotonic() - started)
        return response

    async def _authenticate(self, request: Request) -> TrialPod:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused(401, "a bearer token is needed")
        try:
            return trial_pod(await self.verifier.verify(token.strip()))
        except TokenRejected as error:
            raise Refused(401, str(error)) from error

    async def _allow(self, request: Request, caller: TrialPod, verb: policy.Verb, key: str) -> None:
        if not policy.is_plain(key):
            raise Refused(403, "not a plain key")
        prefix = policy.prefixes(key).trial or request.headers.get(PREFIX_HEADER, "")
        document = await self.documents.find(caller, prefix)
        reason = policy.denial(caller, document, verb, key)
        if reason is not None:
            raise Refused(403, reason)

    async def _create(self, request: Request, caller: TrialPod, key: str) -> Response:
        await self._allow(request, caller, policy.Verb.CREATE, key)
        length = request.headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise Refused(411, "a content length is needed")
        size = int(length)
        if size > self.max_object:
            raise Refused(413, f"at most {self.max_object} bytes are accepted")
        async with self.in_flight.hold(size):
            await self.store.create(key, await _body(request, size))
        self.metrics.bytes.labels("written").inc(size)
        return Response(status_code=201)

    async def _read(self, request: Request, caller: TrialPod, key: str) -> Response:
        await self._allow(request, caller, policy.Verb.READ, key)
        wanted = request.headers.get("range")
        if wanted is not None:
            return await self._read_range(key, wanted)
        pieces = self.store.stream(key)
        first = await anext(pieces, b"")
        return StreamingResponse(
            self._counted(first, pieces), media_type="application/octet-stream"
        )

    async def _read_range(self, key: str, wanted: str) -> Response:
        match = RANGE.fullmatch(wanted)
        if match is None or int(match[2]) < int(match[1]):
            raise Refused(400, "accepted: Range: bytes=<first>-<last>")
        first, last = int(match[1]), int(match[2])
        if last - first >= self.max_object:
            raise Refused(413, f"at most {self.max_object} bytes are accepted")
        try:
            data = await self.store.get_range(key, first, last - first + 1)
        except CorruptObject as error:
            raise Refused(416, "the object is shorter") from error
        self.metrics.bytes.labels("read").inc(len(data))
        headers = {"Content-Range": f"bytes {first}-{last}/*"}
        return Response(data, 206, headers, "application/octet-stream")

    async def _counted(self, first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self.metrics.bytes.labels("read").inc(len(first))
        yield first
        async for piece in pieces:
            self.metrics.bytes.labels("read").inc(len(piece))
            yield piece


async def _body(request: Request, size: int) -> bytes:
    """The body, exactly `size` bytes. Raises Refused, ClientDisconnect."""
    pieces = []
    received = 0
    async for piece in request.stream():
        received += len(piece)
        if received > size:
            raise Refused(400, "the body is longer than its content length")
        pieces.append(piece)
    if received != size:
        raise Refused(400, "the body is shorter than its content length")
    return b"".join(pieces)


def make_app(relay: Relay, ready: Callable[[], Awaitable[str]]) -> Starlette:
    """The application. `ready` gives the empty string, or what is missing."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> Response:
        missing = await ready()
        return PlainTextResponse(missing or "ok", 503 if missing else 200)

    async def metrics(_: Request) -> Response:
        return Response(relay.metrics.text(), media_type=relay.metrics.media_type)

    return Starlette(
        routes=[
            Route("/v1/objects/{key:path}", relay.objects, methods=["GET", "PUT"]),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ]
    )
