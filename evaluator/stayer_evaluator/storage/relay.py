"""The object store as trial pods see it: the evidence relay over HTTP (design.md §4)."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote

import httpx

from stayer_evaluator.records import places
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.retry import RetryingStore, RetryPolicy
from stayer_evaluator.storage.store import AccessDenied, ObjectExists, ObjectMissing, StoreError

PREFIX_HEADER = "Stayer-Prefix"
TIMEOUTS = httpx.Timeout(connect=5.0, read=60.0, write=60.0, pool=60.0)


class Unauthenticated(StoreError):  # noqa: N818 (reads as what happened)
    """The relay does not accept the token, which is read afresh for every request: it may have
    been renewed a moment later, so waiting may help.
    """


class _Body(httpx.AsyncByteStream):
    """A body that can be let go of. What a request leaves behind refers to itself and to its body
    until the cyclic collector comes by; with packs of 16 MiB that would be all of a workspace.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data


class RelayStore:
    """An ObjectStore over the relay's HTTP API. One try a call; see `connect_relay`.

    `prefix` is that of the trial's evidence: the relay finds the trial's document by it also when
    a key of the task is asked for.
    """

    def __init__(self, client: httpx.AsyncClient, token: Callable[[], str], prefix: str) -> None:
        self._client = client
        self._token = token
        self._prefix = prefix

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def create(self, key: str, data: bytes) -> bool:
        answer = await self._send("PUT", key, content=data)
        if answer.status_code in (200, 201):
            return True
        raise _trouble(answer, key)

    async def get(self, key: str) -> bytes:
        answer = await self._send("GET", key)
        if answer.status_code != 200:
            raise _trouble(answer, key)
        return answer.content

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        wanted = {"Range": f"bytes={offset}-{offset + length - 1}"}
        answer = await self._send("GET", key, headers=wanted)
        if answer.status_code != 206:
            raise _trouble(answer, key)
        if len(answer.content) != length:
            raise StoreError(f"{key}: got {len(answer.content)} of {length} bytes at {offset}")
        return answer.content

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        try:
            async with self._client.stream("GET", _url(key), headers=self._headers()) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise _trouble(answer, key)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise StoreError(f"{key}: {type(error).__name__}: {error}") from error

    async def _send(
        self, method: str, key: str, *, content: bytes = b"", headers: dict[str, str] | None = None
    ) -> httpx.Response:
        body = _Body(content)
        length = {"Content-Length": str(len(content))} if content else {}
        try:
            return await self._client.request(
                method,
                _url(key),
                content=body if content else None,
                headers={**self._headers(), **length, **(headers or {})},
            )
        except httpx.HTTPError as error:
            raise StoreError(f"{key}: {type(error).__name__}: {error}") from error
        finally:
            body.data = b""

    def _headers(self) -> dict[str, str]:
        try:
            return {"Authorization": f"Bearer {self._token()}", PREFIX_HEADER: self._prefix}
        except OSError as error:
            raise Unauthenticated(f"token: {error}") from error


def connect_relay(
    url: str,
    *,
    prefix: str,
    token: Path = Path(places.TOKEN),
    policy: RetryPolicy | None = None,
) -> RetryingStore[RelayStore]:
    """The store of a trial's sidecar: the relay at `url`, retried up to 300 s a call.

    `prefix` is the trial's (STAYER_PREFIX).
    """
    # Certificates are only read where they are needed: that takes a good part of a pod's start.
    client = httpx.AsyncClient(
        base_url=url, timeout=TIMEOUTS, trust_env=False, verify=not url.startswith("http:")
    )
    return RetryingStore(RelayStore(client, lambda: token.read_text().strip(), prefix), policy)


def _url(key: str) -> str:
    return f"/v1/objects/{quote(key, safe='/')}"


def _trouble(answer: httpx.Response, key: str) -> StoreError:
    detail = f"{key}: {answer.status_code} {answer.text[:300]}"
    match answer.status_code:
        case 404:
            return ObjectMissing(key)
        case 412:
            return ObjectExists(key)
        case 401:
            return Unauthenticated(detail)
        case 416:
            return CorruptObject(f"{key}: shorter than it must be")
        case 400 | 403 | 413:
            return AccessDenied(detail)
        case _:
            return StoreError(detail)
