"""The seam to every object store."""

from collections.abc import AsyncIterator
from typing import Protocol


class StoreError(Exception):
    """Any trouble with the store; `retryable` says whether waiting may help."""

    retryable = True


class ObjectMissing(StoreError):  # noqa: N818 (reads as what happened)
    """No object under the key."""

    retryable = False


class ObjectExists(StoreError):  # noqa: N818
    """The key was taken by other bytes: the writer lost a race or is fenced."""

    retryable = False


class AccessDenied(StoreError):  # noqa: N818
    """The store or relay refuses this caller."""

    retryable = False


class ObjectStore(Protocol):
    """Create-only object storage. Keys are relative to the store's own bucket and prefix."""

    async def create(self, key: str, data: bytes) -> bool:
        """Create the object if no object has the key.

        True: this call (or an earlier one with equal bytes) made it. Idempotent: a retry after a
        lost answer finds its own bytes and returns True. Raises ObjectExists when other bytes are
        there, StoreError for trouble that outlasted the store's deadline.
        """

    async def get(self, key: str) -> bytes:
        """The whole object. Raises ObjectMissing."""

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`. Raises ObjectMissing, StoreError when short."""

    def stream(self, key: str) -> AsyncIterator[bytes]:
        """The object in pieces. Raises ObjectMissing at the first piece."""


class MutableStore(ObjectStore, Protocol):
    """What only operator and CLI may do besides."""

    async def put(self, key: str, data: bytes) -> None:
        """Create or replace."""

    async def keys(self, prefix: str) -> list[str]:
        """All keys below the prefix, sorted. For people and pruning, never for truth."""

    async def sizes(self, prefix: str) -> dict[str, int]:
        """The same keys, each with its object's bytes."""

    async def delete(self, keys: list[str]) -> None:
        """Delete; missing keys are fine."""
