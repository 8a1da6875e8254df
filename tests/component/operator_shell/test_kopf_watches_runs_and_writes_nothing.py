"""Embedded kopf against the fake API server: what it passes on, and that it only reads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from makers_operator_shell import QUICK, FakeApiServer, eventually, serve
from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.connection import Connection
from stayer_operator.adapters.mirror import Mirror
from stayer_operator.adapters.runs import RunFeed
from stayer_operator.core.observed import RunObject
from stayer_operator.handlers.runs import watch_runs

RUNS = "benchmarkruns"


class Watching:
    """kopf feeding a run mirror."""

    def __init__(self, server: FakeApiServer, namespaces: tuple[str, ...] = ()) -> None:
        self.server = server
        self.namespaces = namespaces
        self.mirror: Mirror[RunObject] = Mirror()
        self.events: list[tuple[str | None, str]] = []
        self.started = asyncio.Event()

    async def __aenter__(self) -> Watching:
        self._serving = serve(self.server)
        connection = Connection(server=await self._serving.__aenter__(), tls=None)
        self.client = ApiClient(connection, QUICK)
        self.feed = RunFeed(self.client, self.namespaces, self.mirror)
        await self.feed.compare()
        self._comparing = asyncio.create_task(self.feed.run())
        self._watching = asyncio.create_task(
            watch_runs(connection, self.namespaces, self.take, started=self.started.set)
        )
        await asyncio.wait_for(self.started.wait(), 5)
        await eventually(lambda: bool(self.server.watchers))
        return self

    def take(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        self.events.append((kind, raw["metadata"]["name"]))
        self.feed.take(kind, raw)

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        await asyncio.wait_for(asyncio.gather(self._watching, return_exceptions=True), 10)
        self._comparing.cancel()
        await asyncio.gather(self._comparing, return_exceptions=True)
        await self.client.close()
        await self._serving.__aexit__(None, None, None)


def test_runs_are_seen_changed_and_deleted_without_a_single_write() -> None:
    server = FakeApiServer()
    server.put(RUNS, "lab", "first")

    async def main() -> None:
        async with Watching(server, ("lab",)) as watching:
            server.put(RUNS, "lab", "second", parallelism=1)
            await eventually(lambda: watching.mirror.get("lab", "second") is not None)
            server.put(RUNS, "lab", "second", parallelism=2)
            await eventually(
                lambda: any(run.manifest["spec"].get("parallelism") == 2 for run in watching.mirror)
            )
            server.drop(RUNS, "lab", "second")
            await eventually(lambda: watching.mirror.get("lab", "second") is None)
            await eventually(lambda: (None, "first") in watching.events)

    asyncio.run(main())
    assert set(server.verbs()) <= {"GET", "WATCH"}


def test_a_run_deleted_while_the_watch_was_blind_is_noticed() -> None:
    server = FakeApiServer()
    for name in ("stays", "goes"):
        server.put(RUNS, "lab", name)

    async def main() -> None:
        async with Watching(server) as watching:
            await eventually(lambda: len(watching.events) == 2)
            server.mute = True
            server.drop(RUNS, "lab", "goes")
            server.mute = False
            server.compact()
            await eventually(lambda: watching.mirror.get("lab", "goes") is None, 10)
            assert watching.mirror.get("lab", "stays") is not None

    asyncio.run(main())
