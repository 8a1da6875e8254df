"""Serving our own small web applications, and the one for probes and scrapers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest


def monitoring(registry: CollectorRegistry, is_ready: Callable[[], bool]) -> web.Application:
    """/healthz: the process answers. /readyz: it leads and sees the cluster. /metrics."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_request: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="not leading, or not in step with the cluster yet")

    async def metrics(_request: web.Request) -> web.Response:
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/metrics", metrics)
    return application


@asynccontextmanager
async def serving(
    application: web.Application, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serve while the block runs, on all addresses or one; yields the port (0: one is chosen)."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
