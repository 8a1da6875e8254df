"""What the client makes of refusals, time limits and expiring tokens."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from aiohttp import web

from makers_operator_shell import QUICK, WIDGETS, FakeApiServer, connect, serve, status
from stayer_operator.adapters.api_client import ApiClient, ClientLimits
from stayer_operator.adapters.connection import Connection, TokenFile
from stayer_operator.errors import (
    AlreadyExists,
    ClusterError,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    QuotaExceeded,
)

PATH = WIDGETS.path("lab", "w0")


def ask(server: FakeApiServer, limits: ClientLimits = QUICK) -> object:
    async def main() -> object:
        async with connect(server, limits) as client:
            return await client.request("get", "GET", PATH)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((409, "AlreadyExists", "taken"), AlreadyExists),
        ((409, "Conflict", "changed"), Conflict),
        ((404, "NotFound", "none"), NotFound),
        ((410, "Expired", "old"), Gone),
        ((403, "Forbidden", "pods is forbidden: exceeded quota: lab"), QuotaExceeded),
        ((403, "Forbidden", "pods is forbidden: User cannot"), Forbidden),
        ((422, "Invalid", "spec.x"), Invalid),
        ((400, "BadRequest", "json"), Invalid),
        ((500, "InternalError", "etcd"), ClusterUnavailable),
        ((504, "Timeout", "etcd"), ClusterUnavailable),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else value.__name__,
)
def test_a_refusal_becomes_its_error(
    answer: tuple[int, str, str], kind: type[ClusterError]
) -> None:
    server = FakeApiServer(refusals=[status(*answer)])
    with pytest.raises(ClusterError) as caught:
        ask(server)
    assert type(caught.value) is kind
    assert caught.value.status == answer[0]
    assert answer[2] in str(caught.value)
    assert f"GET {PATH}" in str(caught.value)


def test_429_is_waited_for_and_holds_everybody() -> None:
    server = FakeApiServer(
        refusals=[status(429, "TooManyRequests", "later", **{"Retry-After": "0"})]
    )
    server.put("widgets", "lab", "w0")
    began = time.monotonic()
    ask(server)
    assert time.monotonic() - began >= 0.09
    assert server.verbs() == ["GET", "GET"]


def test_429_beyond_the_deadline_is_an_error() -> None:
    server = FakeApiServer(
        refusals=[status(429, "TooManyRequests", "later", **{"Retry-After": "30"})]
    )
    limits = ClientLimits(retry_seconds=1)
    with pytest.raises(ClusterUnavailable) as caught:
        ask(server, limits)
    assert caught.value.retryable


def test_a_proxy_error_page_is_quoted_not_parsed() -> None:
    server = FakeApiServer(refusals=[web.Response(status=502, text="<html>bad gateway</html>")])
    with pytest.raises(ClusterUnavailable, match="bad gateway"):
        ask(server)


def test_a_server_that_does_not_answer_is_unavailable_after_the_time_limit() -> None:
    async def main() -> None:
        release = asyncio.Event()

        async def hang(_request: web.Request) -> web.Response:
            await release.wait()
            return web.json_response({})

        server = FakeApiServer()
        server.handle = hang  # type: ignore[method-assign]
        async with connect(server, ClientLimits(request_seconds=0.1)) as client:
            with pytest.raises(ClusterUnavailable, match="GET"):
                await client.request("get", "GET", PATH)
            release.set()

    asyncio.run(main())


def test_a_server_that_is_not_there_is_unavailable() -> None:
    async def main() -> None:
        client = ApiClient(Connection(server="http://127.0.0.1:1", tls=None), QUICK)
        try:
            with pytest.raises(ClusterUnavailable):
                await client.request("get", "GET", PATH)
        finally:
            await client.close()

    asyncio.run(main())


def test_a_token_is_read_again_after_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    server = FakeApiServer()
    server.put("widgets", "lab", "w0")

    async def main() -> None:
        async with serve(server) as address:
            connection = Connection(server=address, tls=None, token=TokenFile(token))
            client = ApiClient(connection, QUICK)
            await client.request("get", "GET", PATH)
            token.write_text("new")
            server.refusals.append(status(401, "Unauthorized", "expired"))
            await client.request("get", "GET", PATH)
            await client.close()

    asyncio.run(main())
    assert server.authorizations == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_token_is_read_again_after_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    now = [0.0]
    token = TokenFile(path, clock=lambda: now[0])
    assert token() == "one"
    path.write_text("two")
    assert token() == "one"
    now[0] = 61.0
    assert token() == "two"
