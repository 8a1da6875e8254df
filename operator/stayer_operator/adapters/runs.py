"""Keeps the mirror of BenchmarkRuns right although its watch (kopf's) tells no deletion that fell
into a 410: what arrives without a type was found by a LIST, so we list once ourselves and compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import structlog

from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.cluster import RUNS
from stayer_operator.adapters.mirror import Mirror
from stayer_operator.core import projection
from stayer_operator.core.observed import RunObject
from stayer_operator.errors import ClusterError

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 2.0  # a LIST arrives as many events; one comparison is enough for all
PAGE = "500"


class RunFeed:
    """Takes the events of the watch; `run` compares when a LIST was seen."""

    def __init__(
        self, client: ApiClient, namespaces: Collection[str], mirror: Mirror[RunObject]
    ) -> None:
        self._client = client
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._mirror = mirror
        self._listed = asyncio.Event()

    def take(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """One event: ADDED, MODIFIED, DELETED, or None for found by a LIST."""
        view = projection.run_object(raw)
        if kind == "DELETED":
            self._mirror.remove(view.namespace, view.name, view.uid)
            return
        if kind is None and self._mirror.get(view.namespace, view.name) is not None:
            self._listed.set()
        self._mirror.put(view, listed=kind is None)

    async def compare(self) -> None:
        """LIST all runs and make the mirror equal to what is there. Raises ClusterError."""
        for namespace in self._namespaces:
            params = {"limit": PAGE}
            views: list[RunObject] = []
            while True:
                answer = await self._client.request(
                    "list", "GET", RUNS.path(namespace), params=params
                )
                views.extend(projection.run_object(item) for item in answer.get("items", ()))
                metadata = answer.get("metadata", {})
                if not (token := metadata.get("continue")):
                    break
                params["continue"] = token
            self._mirror.replace(namespace, views, str(metadata.get("resourceVersion", "")))

    async def run(self) -> None:
        """Compare after each LIST of the watch, until cancelled."""
        while True:
            await self._listed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._listed.clear()
            try:
                await self.compare()
            except ClusterError as error:
                log.warning("runs could not be compared; trying again", error=str(error))
                self._listed.set()
