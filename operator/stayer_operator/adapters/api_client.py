"""Requests to the Kubernetes API over aiohttp: pacing, time limits, retries of 429, typed errors.

It knows HTTP and Kubernetes' conventions, and none of our objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from stayer_operator.adapters import wire
from stayer_operator.adapters.connection import Connection
from stayer_operator.adapters.pacing import TokenBucket
from stayer_operator.adapters.refusals import refusal, retry_after
from stayer_operator.errors import ClusterUnavailable

JSON = "application/json"
# The keys of service-account tokens are served as the second only; 406 without it.
ACCEPTED = f"{JSON}, application/jwk-set+json"
SHORT_PIECE = 32 * 1024  # bytes; a watch that gives less has told what it had
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of object in the API's address space."""

    group: str
    version: str
    plural: str

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The address of a collection, an object or its subresource."""
        parts = ["api"] if not self.group else ["apis", self.group]
        parts.append(self.version)
        if namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """How patient and how fast the client is. Seconds and requests a second."""

    rate: float = 100.0  # scheduler pace on large clusters (100-150 pods a second)
    burst: int = 200
    request_seconds: float = 30.0  # one request; the API server's own limit is 60
    connect_seconds: float = 10.0
    retry_seconds: float = 60.0  # how long 429 is waited for before it becomes an error
    concurrency: int = 32  # requests under way at once; watches are not counted
    # After an event the stream is left alone this long, so that what follows closely is read and
    # worked on together: half the CPU of one by one. A first event is told at once.
    watch_pause: float = 0.5


class ApiClient:
    """One session with one API server."""

    def __init__(
        self,
        connection: Connection,
        limits: ClientLimits | None = None,
        on_request: Callable[[str], None] = lambda _verb: None,
    ) -> None:
        """Must be made inside a running event loop; `on_request` hears every request's verb."""
        self._connection = connection
        self._limits = limits or ClientLimits()
        self._on_request = on_request
        self._bucket = TokenBucket(self._limits.rate, self._limits.burst)
        self._slots = asyncio.Semaphore(self._limits.concurrency)
        self._timeout = aiohttp.ClientTimeout(
            total=self._limits.request_seconds, connect=self._limits.connect_seconds
        )
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),  # nobody sets any
            base_url=connection.server,
            connector=aiohttp.TCPConnector(
                ssl=connection.tls if connection.tls is not None else True,
                limit=0,
            ),
            headers={"Accept": ACCEPTED, "User-Agent": "stayer-operator"},
        )

    async def close(self) -> None:
        """End the session and its connections."""
        await self._session.close()

    async def request(
        self,
        verb: str,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        decode: wire.Decode | None = wire.anything,
    ) -> Any:
        """The decoded answer; {} where nobody reads it (no `decode`). `verb` is Kubernetes' word
        for what is done, for the metric.

        Raises ClusterError (errors.py): what the server refused, or ClusterUnavailable when it did
        not answer. A request whose answer was lost may have been carried out.
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        deadline = asyncio.get_running_loop().time() + self._limits.retry_seconds
        renewed = False
        while True:
            await self._bucket.take()
            self._on_request(verb)
            status, answer, pause = await self._once(method, path, params, data, headers)
            if status < 400:
                return _decoded(decode, answer, f"{method} {path}")
            if status == 401 and not renewed and self._connection.token is not None:
                renewed = True
                self._connection.token.reload()
                continue
            if pause is not None and asyncio.get_running_loop().time() + pause < deadline:
                self._bucket.hold(pause)
                continue
            raise refusal(status, answer, f"{method} {path}")

    async def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes, float | None]:
        try:
            async with (
                self._slots,
                self._session.request(
                    method,
                    path,
                    params=params,
                    data=data,
                    headers={**headers, **self._connection.headers()},
                    timeout=self._timeout,
                ) as response,
            ):
                return response.status, await response.read(), retry_after(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterUnavailable(f"{method} {path}: {_say(error)}") from error

    async def lines(
        self, path: str, params: Mapping[str, str], inactivity_seconds: float
    ) -> AsyncIterator[list[bytes]]:
        """The lines of a WATCH, those that came together in one list, until the server ends it.

        Raises ClusterUnavailable when nothing, not even a bookmark, came for
        `inactivity_seconds`, ClusterError when the server refuses.
        """
        await self._bucket.take()
        self._on_request("watch")
        timeout = aiohttp.ClientTimeout(
            total=None, sock_read=inactivity_seconds, connect=self._limits.connect_seconds
        )
        try:
            async with self._session.get(
                path, params=params, headers=self._connection.headers(), timeout=timeout
            ) as response:
                if response.status >= 400:
                    await self._refuse_watch(path, response)
                rest = b""
                async for chunk in response.content.iter_any():
                    *complete, rest = (rest + chunk).split(b"\n")
                    if complete:
                        yield complete
                    # More is there already after a long piece, and a pause at each would bound
                    # how many events a second can be told.
                    if complete and len(chunk) < SHORT_PIECE:
                        await _pause(response, self._limits.watch_pause)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterUnavailable(f"WATCH {path}: {_say(error)}") from error

    async def _refuse_watch(self, path: str, response: aiohttp.ClientResponse) -> None:
        if response.status == 401 and self._connection.token is not None:
            self._connection.token.reload()
        if (pause := retry_after(response)) is not None:
            self._bucket.hold(pause)
        raise refusal(response.status, await response.read(), f"WATCH {path}")


async def _pause(response: aiohttp.ClientResponse, seconds: float) -> None:
    """Leave what comes to the kernel for a while: it is read, decrypted and told at once then."""
    protocol = response.connection.protocol if response.connection is not None else None
    if protocol is None:
        return
    protocol.pause_reading()
    await asyncio.sleep(seconds)
    protocol.resume_reading()


def _decoded(decode: wire.Decode | None, answer: bytes, request: str) -> Any:
    if not answer or decode is None:
        return {}
    try:
        return decode(answer)
    except msgspec.DecodeError as error:
        raise ClusterUnavailable(f"{request}: the answer is not JSON: {error}") from error


def _say(error: BaseException) -> str:
    return str(error) or type(error).__name__
