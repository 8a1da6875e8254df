"""The recorder's HTTP paths."""

import asyncio

from stayer_evaluator.episode.server import SidecarServer, is_own_address


async def ask(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.split(b"\r\n", 1)[0]


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def test_paths_and_their_answers():
    async def scenario() -> None:
        drained = asyncio.Event()

        async def drain() -> None:
            drained.set()

        server = SidecarServer(drain, own=lambda _: False)
        port = await server.listen("127.0.0.1", 0)
        assert await ask(port, get("/healthz")) == b"HTTP/1.1 200 OK"
        assert await ask(port, get("/started")) == b"HTTP/1.1 503 Service Unavailable"
        server.started = True
        assert await ask(port, get("/started?x=1")) == b"HTTP/1.1 200 OK"
        assert await ask(port, get("/else")) == b"HTTP/1.1 404 Not Found"
        assert await ask(port, b"nonsense\r\n\r\n") == b""
        assert await ask(port, b"x" * 10_000) == b""
        assert not drained.is_set()
        assert await ask(port, get("/drain")) == b"HTTP/1.1 200 OK"
        assert drained.is_set()
        await server.close()

    asyncio.run(scenario())


def test_the_agent_cannot_drain_its_own_recorder():
    async def scenario() -> None:
        async def drain() -> None:
            raise AssertionError("drained from inside the pod")

        server = SidecarServer(drain)
        port = await server.listen("127.0.0.1", 0)
        assert await ask(port, get("/drain")) == b"HTTP/1.1 403 Forbidden"
        await server.close()

    asyncio.run(scenario())


def test_addresses_of_this_namespace_are_known():
    assert is_own_address("127.0.0.1")
    assert is_own_address("127.1.2.3")
    assert not is_own_address("192.0.2.7")
