"""kopf, reduced to a watch of BenchmarkRuns inside our own asyncio program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import kopf

from stayer_operator.adapters.connection import Connection
from stayer_operator.api import names

RunEvent = Callable[[str | None, Mapping[str, Any]], None]
"""Called with ADDED, MODIFIED, DELETED, or None for an object found by a LIST; and the object."""


def make_registry(connection: Connection, on_run: RunEvent) -> kopf.OperatorRegistry:
    """The handlers of kopf: who we are, and one for every change of a run."""
    registry = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=connection.server,
            ca_path=connection.ca_path,
            certificate_path=connection.certificate_path,
            private_key_path=connection.key_path,
            token=connection.token() if connection.token else None,
            default_namespace=connection.namespace,
        )

    async def run_changed(event: Mapping[str, Any], **_: Any) -> None:
        on_run(event["type"], event["object"])

    kopf.on.login(registry=registry)(login)
    kopf.on.event(names.GROUP, names.VERSION, names.RUN_PLURAL, registry=registry)(run_changed)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """The settings of kopf: reads only, in pages, with time limits."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.watching.chunk_size = 500
    settings.watching.initial_streaming = False
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    # kopf waits this long for its workers when it ends; ours have nothing to lose.
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    # Our own program ends the process; kopf must not kill it later.
    settings.process.ultimate_exiting_timeout = None
    return settings


async def watch_runs(
    connection: Connection,
    namespaces: Collection[str],
    on_run: RunEvent,
    *,
    started: Callable[[], None],
) -> None:
    """Watch until cancelled. Returns or raises when kopf ends by itself.

    kopf takes the process's signal handlers; `started` is called afterwards to take them back.
    """
    before = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=make_registry(connection, on_run),
        settings=make_settings(),
        # Only peering, which is off, would use it; by default kopf asks for a user name, and the
        # image has none for its user.
        identity=cast(Any, "stayer-operator"),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
    )
    started()
    await kopf.run_tasks(tasks, ignored=before)
