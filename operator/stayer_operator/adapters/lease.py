"""One leader among operators, by a coordination.k8s.io/v1 Lease.

Only a hint for who works: what protects data are deterministic names and resource versions. Still
a process that was frozen past its lease must not write: `is_held` turns false by our own monotonic
clock before anybody else can take the lease. Others' clocks are never compared with ours: a lease
is over when its record has not changed for its duration since we first saw it so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from stayer_operator.adapters.api_client import ApiClient, Resource
from stayer_operator.errors import AlreadyExists, ClusterError, Conflict, NotFound

log = structlog.get_logger(__name__)

LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases")


class LeaseLostError(Exception):
    """Another process leads, or the API server could not be told in time that we still do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Seconds. `renew_deadline` < `duration`: we stop before others may start."""

    namespace: str
    name: str = "stayer-operator"
    identity: str
    duration: int = 15  # failover within 15 s (facts: scale goals)
    renew_deadline: float = 10.0
    renew_period: float = 5.0
    retry_period: float = 2.0


class Lease:
    """Our hold on the lease. Uses: `await acquire()`, then `await keep()` until it raises."""

    def __init__(
        self,
        client: ApiClient,
        settings: LeaseSettings,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._path = LEASES.path(settings.namespace, settings.name)
        self._object: dict[str, Any] = {}
        self._seen: tuple[str, float] = ("", 0.0)
        self._held_until = float("-inf")

    def is_held(self) -> bool:
        """Whether we may still believe that we lead."""
        return self._clock() < self._held_until

    async def acquire(self) -> None:
        """Wait until the lease is ours. API trouble is waited out."""
        said = ""
        while True:
            try:
                if await self._try_acquire():
                    log.info("leading", identity=self._settings.identity)
                    return
                holder = _spec(self._object).get("holderIdentity", "")
                if holder != said:
                    log.info("waiting for the lease", holder=holder)
                    said = holder
            except (Conflict, AlreadyExists):
                log.info("another operator was faster", lease=self._settings.name)
            except ClusterError as error:
                log.warning("the lease cannot be asked for", error=str(error))
            await self._sleep(self._settings.retry_period)

    async def keep(self) -> None:
        """Renew until it cannot be. Raises LeaseLostError."""
        while True:
            await self._sleep(self._settings.renew_period)
            await self._renew()

    async def release(self) -> None:
        """Give the lease up, so that the next operator need not wait for it to run out."""
        if not self.is_held():
            return
        self._held_until = float("-inf")
        try:
            await self._write(_record(self._object, "", 1, self._wall_clock()))
        except ClusterError as error:
            log.info("the lease was not released; it runs out by itself", error=str(error))

    async def _try_acquire(self) -> bool:
        began = self._clock()
        try:
            self._object = await self._client.request("get", "GET", self._path)
        except NotFound:
            manifest = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._settings.name, "namespace": self._settings.namespace},
            }
            body = _record(manifest, self._settings.identity, self._duration, self._wall_clock())
            path = LEASES.path(self._settings.namespace)
            self._object = await self._client.request("create", "POST", path, body=body)
            self._held_until = began + self._settings.renew_deadline
            return True
        if not self._is_free():
            return False
        await self._claim(began)
        return True

    def _is_free(self) -> bool:
        spec = _spec(self._object)
        holder = spec.get("holderIdentity")
        # The same identity is our own pod: the kubelet starts a container only after the last one
        # is dead, so a restart need not wait.
        if not holder or holder == self._settings.identity:
            return True
        version = str(self._object["metadata"]["resourceVersion"])
        if version != self._seen[0]:
            self._seen = (version, self._clock())
        return self._clock() - self._seen[1] >= float(spec.get("leaseDurationSeconds") or 0)

    async def _renew(self) -> None:
        while True:
            began = self._clock()
            if not self.is_held():
                raise LeaseLostError("the lease could not be renewed in time")
            try:
                await self._claim(began)
            except (Conflict, NotFound) as error:
                # Our own renewal whose answer was lost looks the same as another holder.
                if not await self._is_still_ours():
                    self._held_until = float("-inf")
                    raise LeaseLostError(f"another operator took the lease: {error}") from error
            except ClusterError as error:
                log.warning("the lease was not renewed yet", error=str(error))
                await self._sleep(min(1.0, self._settings.retry_period))
            else:
                return

    async def _is_still_ours(self) -> bool:
        try:
            self._object = await self._client.request("get", "GET", self._path)
        except ClusterError:
            return False
        return _spec(self._object).get("holderIdentity") == self._settings.identity

    async def _claim(self, began: float) -> None:
        body = _record(self._object, self._settings.identity, self._duration, self._wall_clock())
        await self._write(body)
        self._held_until = began + self._settings.renew_deadline

    async def _write(self, body: Mapping[str, Any]) -> None:
        self._object = await self._client.request("update", "PUT", self._path, body=body)

    @property
    def _duration(self) -> int:
        return self._settings.duration


def _spec(lease: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = lease.get("spec") or {}
    return found


def _record(lease: Mapping[str, Any], holder: str, duration: int, now: datetime) -> dict[str, Any]:
    """The lease with a new holder or time; resourceVersion stays, so that one writer wins."""
    old = _spec(lease)
    time_text = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    changed = old.get("holderIdentity") != holder
    spec = {
        **old,
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "renewTime": time_text,
    }
    if changed:
        spec["acquireTime"] = time_text
        spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + 1
    metadata = {k: v for k, v in lease["metadata"].items() if k != "managedFields"}
    return {**lease, "metadata": metadata, "spec": spec}
