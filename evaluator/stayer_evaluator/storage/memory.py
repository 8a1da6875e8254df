"""Stores in memory: the reference implementation, and two that fail on purpose."""

from collections.abc import AsyncIterator, Iterable

from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.store import ObjectExists, ObjectMissing, ObjectStore, StoreError

PIECE = 1024 * 1024


class MemoryStore:
    """A MutableStore in a dictionary. `writes` counts creations and replacements."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects: dict[str, bytes] = dict(objects or {})
        self.writes = 0

    async def create(self, key: str, data: bytes) -> bool:
        present = self.objects.get(key)
        if present is None:
            self.objects[key] = bytes(data)
            self.writes += 1
        elif present != data:
            raise ObjectExists(key)
        return True

    async def get(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise ObjectMissing(key) from None

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        data = (await self.get(key))[offset : offset + length]
        if len(data) != length:
            raise CorruptObject(f"{key}: wanted {length} bytes at {offset}, there are {len(data)}")
        return data

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        data = await self.get(key)
        for start in range(0, len(data), PIECE):
            yield data[start : start + PIECE]

    async def put(self, key: str, data: bytes) -> None:
        self.objects[key] = bytes(data)
        self.writes += 1

    async def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    async def sizes(self, prefix: str) -> dict[str, int]:
        return {key: len(self.objects[key]) for key in await self.keys(prefix)}

    async def delete(self, keys: list[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)


class StoreKilled(StoreError):  # noqa: N818 (reads as what happened)
    """The process was killed at a write: nothing works from here on."""

    retryable = False


class CrashingStore:
    """Dies at its `crash_at`-th write (from 1): before it is done, or just after, unanswered.

    From then on every call raises StoreKilled, as it would for a process that is gone.
    """

    def __init__(self, inner: ObjectStore, crash_at: int, *, after: bool = False) -> None:
        self.inner = inner
        self.crash_at = crash_at
        self.after = after
        self.writes = 0
        self.dead = False

    async def create(self, key: str, data: bytes) -> bool:
        self._check()
        self.writes += 1
        if self.writes != self.crash_at:
            return await self.inner.create(key, data)
        self.dead = True
        if self.after:
            await self.inner.create(key, data)
        raise StoreKilled(key)

    async def get(self, key: str) -> bytes:
        self._check()
        return await self.inner.get(key)

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        self._check()
        return await self.inner.get_range(key, offset, length)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        self._check()
        async for piece in self.inner.stream(key):
            yield piece

    def _check(self) -> None:
        if self.dead:
            raise StoreKilled("the store is gone")


class FaultyStore:
    """Fails the calls whose index (from 0, all methods counted together) is listed.

    `lost` calls are carried out but their answer is lost; `refused` calls do nothing.
    """

    def __init__(
        self, inner: ObjectStore, *, refused: Iterable[int] = (), lost: Iterable[int] = ()
    ) -> None:
        self.inner = inner
        self.refused = frozenset(refused)
        self.lost = frozenset(lost)
        self.calls = 0

    async def create(self, key: str, data: bytes) -> bool:
        lost = self._next(key)
        done = await self.inner.create(key, data)
        if lost:
            raise StoreError(f"{key}: answer lost")
        return done

    async def get(self, key: str) -> bytes:
        lost = self._next(key)
        data = await self.inner.get(key)
        if lost:
            raise StoreError(f"{key}: answer lost")
        return data

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        lost = self._next(key)
        data = await self.inner.get_range(key, offset, length)
        if lost:
            raise StoreError(f"{key}: answer lost")
        return data

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        lost = self._next(key)
        async for piece in self.inner.stream(key):
            yield piece
            if lost:
                raise StoreError(f"{key}: cut off")

    def _next(self, key: str) -> bool:
        """Count the call; raises for a refused one, True for one whose answer is lost."""
        call, self.calls = self.calls, self.calls + 1
        if call in self.refused:
            raise StoreError(f"{key}: refused")
        return call in self.lost
