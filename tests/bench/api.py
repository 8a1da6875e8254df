"""The cluster as a bench uses it: as its administrator, with a watch that stamps what it sees."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import orjson

from stayer_operator.adapters.api_client import MERGE_PATCH, ApiClient, ClientLimits, Resource
from stayer_operator.adapters.cluster import NODES, PODS, RUNS, TRIALS
from stayer_operator.adapters.connection import find_connection
from stayer_operator.api import names
from stayer_operator.errors import ClusterError, NotFound

Raw = dict[str, Any]
Seen = Callable[[str, Raw, float], None]  # ADDED | MODIFIED | DELETED, object, time

SYSTEM_NAMESPACE = os.environ.get("STAYER_NAMESPACE", "stayer-system")
RUN_NAMESPACE = os.environ.get("STAYER_RUN_NAMESPACE", "stayer-runs")
OPERATOR_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:stayer-operator"
OPERATOR_PODS = "app.kubernetes.io/name=stayer,app.kubernetes.io/component=operator"
MINE = f"{names.GROUP}/bench"  # label of what benches make and sweep
TERMINAL = frozenset({"Succeeded", "Failed", "Cancelled"})


class BenchError(Exception):
    """What keeps a bench from measuring; for the person who started it."""


class Api:
    """Requests in the run namespace, and watches."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def create(self, resource: Resource, manifest: Raw) -> Raw:
        """POST; the created object."""
        path = resource.path(manifest["metadata"].get("namespace"))
        made: Raw = await self._client.request("create", "POST", path, body=manifest)
        return made

    async def get(self, resource: Resource, name: str, namespace: str | None) -> Raw:
        """Raises NotFound."""
        found: Raw = await self._client.request("get", "GET", resource.path(namespace, name))
        return found

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = ""
    ) -> tuple[list[Raw], str]:
        """All objects and the version of the list."""
        params = {"labelSelector": selector} if selector else {}
        answer = await self._client.request("list", "GET", resource.path(namespace), params=params)
        return answer["items"], answer["metadata"]["resourceVersion"]

    async def merge(self, resource: Resource, name: str, namespace: str, patch: Raw) -> Raw:
        """Merge-patch."""
        path = resource.path(namespace, name)
        done: Raw = await self._client.request(
            "patch", "PATCH", path, body=patch, content_type=MERGE_PATCH
        )
        return done

    async def delete(self, resource: Resource, name: str, namespace: str | None) -> None:
        """Gone or going, whether it was there or not."""
        with suppress(NotFound):
            await self._client.request("delete", "DELETE", resource.path(namespace, name))

    @asynccontextmanager
    async def watching(
        self, resource: Resource, namespace: str | None, selector: str, seen: Seen
    ) -> AsyncIterator[None]:
        """Show every change to `seen`, from now until the block ends."""
        items, version = await self.list(resource, namespace, selector)
        for item in items:
            seen("ADDED", item, time.time())
        task = asyncio.create_task(self._watch(resource, namespace, selector, version, seen))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(
        self, resource: Resource, namespace: str | None, selector: str, version: str, seen: Seen
    ) -> None:
        while True:
            params = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
            params |= {"labelSelector": selector} if selector else {}
            lines = self._client.lines(resource.path(namespace), params, 120)
            with suppress(ClusterError):  # from where it broke off
                async for line in _each(lines):
                    at, event = time.time(), orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise BenchError(f"watch of {resource.plural}: {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        seen(event["type"], event["object"], at)
            await asyncio.sleep(0.2)


async def _each(batches: AsyncIterator[list[bytes]]) -> AsyncIterator[bytes]:
    async for batch in batches:
        for line in batch:
            if line:
                yield line


@asynccontextmanager
async def connect(*, prompt: bool = False) -> AsyncIterator[Api]:
    """As whom the kubeconfig of the environment names. `prompt`: its watches do not wait for
    more after an event, which costs more CPU.
    """
    limits = ClientLimits(rate=500, burst=1000)
    if prompt:
        limits = replace(limits, watch_pause=0.0)
    client = ApiClient(find_connection(os.environ), limits)
    try:
        yield Api(client)
    finally:
        await client.close()


async def until(
    holds: Callable[[], bool | Awaitable[bool]], seconds: float, what: str, every: float = 0.1
) -> float:
    """Wait until something holds, and say how long it took. Raises BenchError after `seconds`."""
    began = time.monotonic()
    while True:
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise BenchError(f"not within {seconds:.0f} s: {what}")
        await asyncio.sleep(every)


@asynccontextmanager
async def deleting(api: Api, name: str) -> AsyncIterator[None]:
    """Delete the run at the end of the block, with all that belongs to it."""
    try:
        yield
    finally:
        await delete_run(api, name)


@asynccontextmanager
async def running(api: Api, manifest: Raw) -> AsyncIterator[Raw]:
    """Apply a run, and delete it at the end of the block."""
    async with deleting(api, manifest["metadata"]["name"]):
        yield await api.create(RUNS, manifest)


async def no_pods(api: Api, selector: str) -> bool:
    """No pod of the run namespace has these labels."""
    pods, _ = await api.list(PODS, RUN_NAMESPACE, selector)
    return not pods


async def delete_run(api: Api, name: str) -> None:
    """Delete a run and wait until its Trials and pods are gone."""
    await api.delete(RUNS, name, RUN_NAMESPACE)
    selector = f"{names.LABEL_RUN}={name}"

    async def gone() -> bool:
        left = [await api.list(kind, RUN_NAMESPACE, selector) for kind in (TRIALS, PODS)]
        return not any(items for items, _ in left)

    await until(gone, 300, f"trials and pods of {name} are deleted", every=1.0)


async def delete_leftovers(api: Api) -> None:
    """What a bench that was killed left in the cluster."""
    runs, _ = await api.list(RUNS, RUN_NAMESPACE, MINE)
    for run in runs:
        await delete_run(api, run["metadata"]["name"])
    nodes, _ = await api.list(NODES, None, MINE)
    for node in nodes:
        await api.delete(NODES, node["metadata"]["name"], None)


def run_manifest(name: str, spec: Raw) -> Raw:
    """A BenchmarkRun of ours."""
    metadata = {"name": name, "namespace": RUN_NAMESPACE, "labels": {MINE: "true"}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": metadata,
        "spec": {"benchmark": "loops", **spec},
    }


def phase_of(item: Mapping[str, Any]) -> str:
    """The phase of a run or Trial."""
    return str((item.get("status") or {}).get("phase") or "Pending")
