"""Keeps a mirror in step with the API server: paged LIST, then WATCH with bookmarks.

Survives what a watch can do to us: its regular end, silence, 410 (list again; the mirror tells the
deletions that happened in between), refusals (back-off with jitter). Why not kopf for this:
facts measured for kopf 1.45 say 60 times the CPU, five times the memory, and ghosts after a 410.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic

import msgspec
import structlog

from stayer_operator.adapters import wire
from stayer_operator.adapters.api_client import ApiClient, Resource
from stayer_operator.adapters.mirror import Mirror, V
from stayer_operator.errors import ClusterError, ClusterUnavailable, Gone

log = structlog.get_logger(__name__)

SHORT_WATCH_SECONDS = 1.0
_SIGHTS = (b'{"type":"ADDED"', b'{"type":"MODIFIED"')
# The first in a line is the object's own: quotes within strings are escaped, and no metadata comes
# before it that has a field of this name.
_VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerLimits:
    """Seconds and objects."""

    page: int = 500  # one page of 3 KB objects is 1.5 MB: bounded memory on both sides
    watch_seconds: int = 540  # asked of the server, with jitter up to half more
    inactivity_seconds: float = 75.0  # bookmarks come once a minute
    first_pause: float = 0.25
    longest_pause: float = 30.0


class Informer(Generic[V]):
    """One kind of object in one namespace, or in all."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        mirror: Mirror[V],
        project: Callable[[Mapping[str, Any]], V],
        *,
        decoders: wire.Decoders = wire.WHOLE,
        namespace: str | None = None,
        selector: str = "",
        limits: InformerLimits | None = None,
    ) -> None:
        """`project` makes a view of a raw object; it sees each object once and keeps no part.
        `decoders` read it at least as far as `project` does.
        """
        self._client = client
        self._resource = resource
        self._mirror = mirror
        self._project = project
        self._decoders = decoders
        self._namespace = namespace
        self._selector = selector
        self._limits = limits or InformerLimits()
        self._path = resource.path(namespace)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Keep the mirror in step until cancelled."""
        failures = 0
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list()
                    self.synced.set()
                    failures = 0
                began = asyncio.get_running_loop().time()
                seen = await self._watch(version)
                lasted = asyncio.get_running_loop().time() - began
                # A watch that ends at once and empty is a server in trouble: do not spin.
                failures = 0 if seen != version or lasted > SHORT_WATCH_SECONDS else failures + 1
                version = seen
            except Gone:
                log.info("relist", resource=self._resource.plural, namespace=self._namespace)
                version = None
                failures += 1
            except _Interrupted as interruption:
                version = interruption.version
                failures = 0 if interruption.progressed else failures + 1
                self._report(interruption, failures)
            except ClusterError as error:
                failures += 1
                self._report(error, failures)
            if failures:
                await asyncio.sleep(self._pause(failures))

    async def _list(self) -> str:
        """Read everything in pages, put it into the mirror and return the list's version."""
        params = self._params() | {"limit": str(self._limits.page)}
        views: list[V] = []
        while True:
            answer = await self._client.request(
                "list", "GET", self._path, params=params, decode=self._decoders.page
            )
            views.extend(self._project(item) for item in answer.get("items", ()))
            metadata = answer.get("metadata", {})
            if not (token := metadata.get("continue")):
                break
            params["continue"] = token
        version = str(metadata.get("resourceVersion", ""))
        self._mirror.replace(self._namespace, views, version)
        return version

    async def _watch(self, version: str) -> str:
        """Follow the changes after `version`; return the last version when the server ends it."""
        first = version
        seconds = self._limits.watch_seconds * (1 + random.random() / 2)  # noqa: S311 (jitter)
        params = self._params() | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        stream = self._client.lines(self._path, params, self._limits.inactivity_seconds)
        try:
            async for lines in stream:
                unknown = (line for line in lines if not self._is_known(line))
                for event in newest_events(unknown, self._decoders.event):
                    version = self._take(event) or version
        except ClusterUnavailable as error:
            raise _Interrupted(error, version, progressed=version != first) from error
        except msgspec.DecodeError as error:
            cut = ClusterUnavailable(f"WATCH {self._path}: a line is not JSON: {error}")
            raise _Interrupted(cut, version, progressed=version != first) from error
        return version

    def _is_known(self, line: bytes) -> bool:
        """Not worth decoding: the answer to a write of ours has shown this sight already."""
        if not line.startswith(_SIGHTS):
            return False
        found = _VERSION.search(line)
        return found is not None and self._mirror.holds_version(found[1].decode())

    def _take(self, event: Mapping[str, Any]) -> str:
        """Apply one watch event; return the version that it brings the mirror to, empty if none."""
        raw = event.get("object") or {}
        kind = event.get("type")
        if kind == "ERROR":
            raise _watch_error(raw, self._path)
        metadata = raw.get("metadata", {})
        version: str = metadata.get("resourceVersion", "")
        if kind in ("ADDED", "MODIFIED"):
            self._mirror.put(self._project(raw))
        elif kind == "DELETED":
            self._mirror.remove(
                metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")
            )
        return version

    def _params(self) -> dict[str, str]:
        return {"labelSelector": self._selector} if self._selector else {}

    def _pause(self, failures: int) -> float:
        doubled = self._limits.first_pause * 2.0 ** min(failures - 1, 16)
        longest = min(self._limits.longest_pause, doubled)
        return longest * (0.5 + random.random() / 2)  # noqa: S311 (jitter)

    def _report(self, error: Exception, failures: int) -> None:
        level = log.info if failures <= 1 else log.warning
        level(
            "watch interrupted",
            resource=self._resource.plural,
            namespace=self._namespace,
            error=str(error),
            failures=failures,
        )


def newest_events(lines: Iterable[bytes], decode: wire.Decode) -> Iterator[Mapping[str, Any]]:
    """The events of lines that came together, without sights of an object that a later one of
    them replaces. The last sight before a deletion stays: it tells how the object ended.

    Raises msgspec.DecodeError at a line that is no JSON, after the events before it.
    """
    events: list[Mapping[str, Any]] = []
    broken: msgspec.DecodeError | None = None
    for line in lines:
        try:
            events.append(decode(line) if line else {})
        except msgspec.DecodeError as error:
            broken = error
            break
    last = {_uid(event): n for n, event in enumerate(events) if event.get("type") == "MODIFIED"}
    for number, event in enumerate(events):
        is_sight = event.get("type") in ("ADDED", "MODIFIED")
        if not is_sight or last.get(_uid(event), number) <= number:
            yield event
    if broken is not None:
        raise broken


class _Interrupted(ClusterUnavailable):
    """A watch broke off after it had brought the mirror to `version`."""

    def __init__(self, error: Exception, version: str, *, progressed: bool) -> None:
        super().__init__(str(error))
        self.version = version
        self.progressed = progressed


def _uid(event: Mapping[str, Any]) -> str:
    found: str = event["object"]["metadata"]["uid"]
    return found


def _watch_error(status: Mapping[str, Any], path: str) -> ClusterError:
    text = f"WATCH {path}: {status.get('message', status)}"
    if status.get("code") == 410 or status.get("reason") in ("Expired", "Gone"):
        return Gone(text)
    return ClusterUnavailable(text)
