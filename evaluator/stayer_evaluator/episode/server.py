"""The recorder's HTTP paths /started, /drain and /healthz: three fixed answers, no framework."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

MAX_REQUEST = 8192
REQUEST_SECONDS = 5.0

_ANSWERS = {200: "OK", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


def is_own_address(host: str) -> bool:
    """Whether an address belongs to this network namespace: only such ones can be bound.

    The kubelet calls from the node; whoever calls from inside is the agent, which shares the
    namespace and must not be able to end its own episode (security.md W18, A23).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host.partition("%")[0], 0))
        except OSError:
            return False
    return True


class SidecarServer:
    """Answers the kubelet. `drain` is awaited before its answer is sent."""

    def __init__(
        self, drain: Callable[[], Awaitable[None]], *, own: Callable[[str], bool] = is_own_address
    ) -> None:
        self.started = False
        self._drain = drain
        self._own = own
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Start; returns the port."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop taking requests."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError,
            TimeoutError,
            ValueError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].split(b"?", 1)[0].decode("ascii", "replace")
            code = await self._answer(path, str(writer.get_extra_info("peername")[0]))
            status = f"HTTP/1.1 {code} {_ANSWERS[code]}\r\n"
            writer.write(status.encode() + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    async def _answer(self, path: str, peer: str) -> int:
        match path:
            case "/healthz":
                return 200
            case "/started":
                return 200 if self.started else 503
            case "/drain":
                if self._own(peer):
                    return 403
                await self._drain()
                return 200
            case _:
                return 404
