"""Clusters and stores that fail on purpose, around ones that work. Shipped, so that everybody who
changes the loop can prove what it does at every single write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.core.plan import Event, Manifest, StatusWrite
from stayer_operator.core.trial.backoff import fraction
from stayer_operator.errors import ClusterUnavailable, Conflict
from stayer_operator.ports import Cluster, Raw, Subject

T = TypeVar("T")


class ProcessKilled(BaseException):
    """SIGKILL: no handler of the program sees it, nothing of it runs afterwards."""


class Fuse:
    """Kills the process at its `crash_at`-th write (from 1), of whatever kind: just before it is
    done or, `after`, just after it, unanswered. 0: never. Counts all writes.
    """

    def __init__(self, crash_at: int = 0, *, after: bool = False) -> None:
        self._crash_at = crash_at
        self._after = after
        self.writes = 0
        self.is_blown = False

    async def write(self, send: Callable[[], Awaitable[T]]) -> T:
        """Do the write, or die at it."""
        self.check()
        self.writes += 1
        if self.writes != self._crash_at:
            return await send()
        self.is_blown = True
        if self._after:
            await send()
        raise ProcessKilled(f"at write {self.writes}")

    def check(self) -> None:
        """A dead process does nothing."""
        if self.is_blown:
            raise ProcessKilled("dead")


class WrappedCluster:
    """Passes everything on; `_write` sees every write."""

    def __init__(self, inner: Cluster) -> None:
        self._inner = inner

    async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
        return await send()

    async def create_trial(self, manifest: Manifest) -> Raw:
        """As the inner one."""
        return await self._write(lambda: self._inner.create_trial(manifest))

    async def create_pod(self, manifest: Manifest) -> Raw:
        """As the inner one."""
        return await self._write(lambda: self._inner.create_pod(manifest))

    async def create_network_policy(self, manifest: Manifest) -> Raw:
        """As the inner one."""
        return await self._write(lambda: self._inner.create_network_policy(manifest))

    async def get_trial(self, namespace: str, name: str) -> Raw:
        """As the inner one."""
        return await self._inner.get_trial(namespace, name)

    async def get_pod(self, namespace: str, name: str) -> Raw:
        """As the inner one."""
        return await self._inner.get_pod(namespace, name)

    async def get_network_policy(self, namespace: str, name: str) -> Raw:
        """As the inner one."""
        return await self._inner.get_network_policy(namespace, name)

    async def get_config_map(self, namespace: str, name: str) -> Raw:
        """As the inner one."""
        return await self._inner.get_config_map(namespace, name)

    async def patch_status(self, write: StatusWrite) -> Raw:
        """As the inner one."""
        return await self._write(lambda: self._inner.patch_status(write))

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_seconds: int | None
    ) -> None:
        """As the inner one."""
        await self._write(lambda: self._inner.delete_pod(namespace, name, uid, grace_seconds))

    async def delete_pods_of_trial(
        self, namespace: str, trial_uid: str, role: Role | None, grace_seconds: int | None
    ) -> None:
        """As the inner one."""
        await self._write(
            lambda: self._inner.delete_pods_of_trial(namespace, trial_uid, role, grace_seconds),
        )

    async def delete_trial(self, namespace: str, name: str, uid: str) -> None:
        """As the inner one."""
        await self._write(lambda: self._inner.delete_trial(namespace, name, uid))

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """As the inner one."""
        await self._write(lambda: self._inner.delete_run(namespace, name, uid))

    async def emit_event(self, regarding: Subject, event: Event) -> None:
        """As the inner one."""
        await self._write(lambda: self._inner.emit_event(regarding, event))


class CrashingCluster(WrappedCluster):
    """The process dies when its fuse says so."""

    def __init__(self, inner: Cluster, fuse: Fuse) -> None:
        super().__init__(inner)
        self._fuse = fuse

    async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
        return await self._fuse.write(send)


class RejectingCluster(WrappedCluster):
    """Every status write of an object conflicts `times` times before one gets through."""

    def __init__(self, inner: Cluster, times: int) -> None:
        super().__init__(inner)
        self._times = times
        self._refused: Counter[str] = Counter()

    async def patch_status(self, write: StatusWrite) -> Raw:
        """Conflict, until it was refused often enough."""
        if self._refused[write.uid] < self._times:
            self._refused[write.uid] += 1
            raise Conflict(f"{write.kind} {write.name} has changed", status=409)
        self._refused[write.uid] = 0
        return await super().patch_status(write)


class FlakyCluster(WrappedCluster):
    """One write in `period` is not answered, irregularly and always the same ones: done all the
    same when `lost`, else not.
    """

    def __init__(self, inner: Cluster, period: int, *, lost: bool) -> None:
        super().__init__(inner)
        self._period = period
        self._lost = lost
        self._writes = 0

    async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
        self._writes += 1
        if fraction("flaky", self._writes) * self._period >= 1:
            return await send()
        if self._lost:
            await send()
        raise ClusterUnavailable("no answer")


class CrashingEvidence:
    """A store whose writes burn the same fuse as the cluster's."""

    def __init__(self, inner: MutableStore, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    async def create(self, key: str, data: bytes) -> bool:
        """As the inner one."""
        return await self._fuse.write(lambda: self._inner.create(key, data))

    async def put(self, key: str, data: bytes) -> None:
        """As the inner one."""
        await self._fuse.write(lambda: self._inner.put(key, data))

    async def delete(self, keys: list[str]) -> None:
        """As the inner one."""
        await self._fuse.write(lambda: self._inner.delete(keys))

    async def get(self, key: str) -> bytes:
        """As the inner one."""
        self._fuse.check()
        return await self._inner.get(key)

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        """As the inner one."""
        self._fuse.check()
        return await self._inner.get_range(key, offset, length)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """As the inner one."""
        async for piece in self._inner.stream(key):
            yield piece

    async def keys(self, prefix: str) -> list[str]:
        """As the inner one."""
        return await self._inner.keys(prefix)
