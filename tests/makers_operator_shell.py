"""A small Kubernetes API server in this process, for the shell of the operator."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from stayer_operator.adapters.api_client import ApiClient, ClientLimits, Resource
from stayer_operator.adapters.connection import Connection

WIDGETS = Resource(group="stayer.dev", version="v1alpha1", plural="widgets")
QUICK = ClientLimits(rate=10_000, burst=10_000, request_seconds=5, connect_seconds=5)


@dataclass(frozen=True)
class WidgetView:
    """A projection as small as they get."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    colour: str


def view_widget(raw: Any) -> WidgetView:
    metadata = raw["metadata"]
    return WidgetView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        colour=raw.get("spec", {}).get("colour", ""),
    )


Key = tuple[str, str, str]


def _group(name: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "versions": [{"version": version}],
        "preferredVersion": {"version": version},
    }


def _resources(*plurals: str) -> dict[str, Any]:
    verbs = ["list", "watch", "get", "patch"]
    return {
        "resources": [
            {
                "name": plural,
                "singularName": plural[:-1],
                "kind": plural[:-1].capitalize(),
                "namespaced": plural not in ("namespaces", "customresourcedefinitions"),
                "verbs": verbs,
            }
            for plural in plurals
        ]
    }


DISCOVERY: dict[str, Any] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": _resources("namespaces", "events"),
    "/apis": {
        "groups": [_group("stayer.dev", "v1alpha1"), _group("apiextensions.k8s.io", "v1")],
    },
    "/apis/stayer.dev/v1alpha1": _resources("benchmarkruns", "trials"),
    "/apis/apiextensions.k8s.io/v1": _resources("customresourcedefinitions"),
}


def _line(event: dict[str, Any]) -> bytes:
    """As dense as those of the real one."""
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


@dataclass
class FakeApiServer:
    """Objects in memory, LIST in pages, WATCH with bookmarks, optimistic concurrency.

    Knobs say how it misbehaves: `compacted` (versions up to it answer 410), `mute` (watches say
    nothing more), `refusals` (answers to give before the real ones).
    """

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, str, Key, dict[str, Any]]] = field(default_factory=list)
    version: int = 100
    compacted: int = 0
    mute: bool = False
    refusals: list[web.Response] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    on_request: Callable[[web.Request], None] = lambda _request: None
    watchers: dict[asyncio.Queue[bytes | None], tuple[str, str]] = field(default_factory=dict)
    page_expires: bool = False
    bodies: list[Any] = field(default_factory=list)

    def put(self, plural: str, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
        key = (plural, namespace, name)
        self.version += 1
        existing = self.objects.get(key)
        uid = existing["metadata"]["uid"] if existing else f"uid-{self.version}"
        raw = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": uid,
                "resourceVersion": str(self.version),
            },
            "spec": spec,
        }
        self._record("MODIFIED" if existing else "ADDED", key, raw)
        self.objects[key] = raw
        return raw

    def drop(self, plural: str, namespace: str, name: str) -> None:
        key = (plural, namespace, name)
        raw = copy.deepcopy(self.objects.pop(key))
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", key, raw)

    def bookmark(self) -> None:
        self.version += 1
        self._tell(
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}
        )

    def compact(self) -> None:
        """Forget history and tell the watchers so."""
        self.compacted = self.version
        self.history.clear()
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        self._tell({"type": "ERROR", "object": status})
        self.end_watches()

    def end_watches(self) -> None:
        for queue in list(self.watchers):
            queue.put_nowait(None)

    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.requests]

    def _record(self, kind: str, key: Key, raw: dict[str, Any]) -> None:
        self.history.append((self.version, kind, key, copy.deepcopy(raw)))
        self._tell({"type": kind, "object": raw}, key)

    def _tell(self, event: dict[str, Any], key: Key | None = None) -> None:
        """Whoever watches the object; everybody where it is about none."""
        for queue, (plural, namespace) in self.watchers.items():
            about = key is None or (key[0] == plural and namespace in ("", key[1]))
            if about and not self.mute:
                queue.put_nowait(_line(event))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        verb = "WATCH" if query.get("watch") else request.method
        self.requests.append((verb, request.path, query))
        self.authorizations.append(request.headers.get("Authorization", ""))
        self.on_request(request)
        if self.refusals:
            return self.refusals.pop(0)
        parts = [part for part in request.path.split("/") if part]
        if request.path in DISCOVERY:
            return web.json_response(DISCOVERY[request.path])
        parts = parts[3:] if parts[0] == "apis" else parts[2:]
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        plural, name = parts[0], parts[1] if len(parts) > 1 else ""
        if verb == "WATCH":
            return await self._watch(request, plural, namespace)
        if request.method == "GET" and not name:
            return self._list(plural, namespace, query)
        body = await request.json() if request.can_read_body else None
        self.bodies.append(body)
        return self._object(request.method, (plural, namespace, name), body)

    def _list(self, plural: str, namespace: str, query: dict[str, str]) -> web.Response:
        names = sorted(
            key for key in self.objects if key[0] == plural and namespace in ("", key[1])
        )
        start = int(query.get("continue", "0"))
        if start and self.page_expires:
            self.page_expires = False
            return status(410, "Expired", "the continue token is too old")
        limit = int(query.get("limit", "0")) or len(names)
        metadata = {"resourceVersion": str(self.version)}
        if start + limit < len(names):
            metadata["continue"] = str(start + limit)
        items = [self.objects[key] for key in names[start : start + limit]]
        return web.json_response({"metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.compacted:
            return status(410, "Expired", "too old resource version")
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, kind, key, raw in self.history:
            if version > since and key[0] == plural and namespace in ("", key[1]):
                queue.put_nowait(_line({"type": kind, "object": raw}))
        self.watchers[queue] = (plural, namespace)
        try:
            while (line := await queue.get()) is not None:
                # Two writes a line: clients must put lines together themselves.
                await response.write(line[:7])
                await response.write(line[7:])
        finally:
            del self.watchers[queue]
        return response

    def _object(self, method: str, key: Key, body: Any) -> web.Response:
        plural, namespace, name = key
        if method == "POST":
            name = body["metadata"]["name"]
            if (plural, namespace, name) in self.objects:
                return status(409, "AlreadyExists", f"{name} exists")
            return self._store((plural, namespace, name), body, created=True)
        held = self.objects.get(key)
        if held is None:
            return status(404, "NotFound", f"{name} not found")
        if method == "GET":
            return web.json_response(held)
        wanted = (body or {}).get("metadata", {}).get("resourceVersion") or (
            (body or {}).get("preconditions") or {}
        ).get("resourceVersion")
        uid = ((body or {}).get("preconditions") or {}).get("uid")
        if wanted not in (None, held["metadata"]["resourceVersion"]) or uid not in (
            None,
            held["metadata"]["uid"],
        ):
            return status(409, "Conflict", f"{name} was changed")
        if method == "DELETE":
            self.drop(*key)
            return web.json_response({"kind": "Status", "status": "Success"})
        merged = body if method == "PUT" else merge(held, body)
        return self._store(key, merged, created=False)

    def _store(self, key: Key, body: dict[str, Any], *, created: bool) -> web.Response:
        self.version += 1
        raw = copy.deepcopy(body)
        old = self.objects.get(key)
        uid = old["metadata"]["uid"] if old else f"uid-{self.version}"
        raw["metadata"] |= {
            "namespace": key[1],
            "uid": uid,
            "resourceVersion": str(self.version),
        }
        self._record("ADDED" if created else "MODIFIED", key, raw)
        self.objects[key] = raw
        return web.json_response(raw, status=201 if created else 200)


def merge(held: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(held) if isinstance(held, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


@asynccontextmanager
async def serve(server: FakeApiServer) -> AsyncIterator[str]:
    """The address of the fake while it runs."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.end_watches()
        await runner.cleanup()


@asynccontextmanager
async def connect(
    server: FakeApiServer, limits: ClientLimits = QUICK, **options: Any
) -> AsyncIterator[ApiClient]:
    """A client of a running fake."""
    async with serve(server) as address:
        client = ApiClient(Connection(server=address, tls=None, **options), limits)
        try:
            yield client
        finally:
            await client.close()


async def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until the condition holds; fail after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (any condition of the test)
            await asyncio.sleep(0.005)
