"""Proves at start-up that the store lets exactly one conditional writer win (design.md §5)."""

import asyncio
import contextlib
import secrets

from stayer_evaluator.storage.store import MutableStore, ObjectExists, StoreError

WRITERS = 16


class UnsafeStore(StoreError):  # noqa: N818 (reads as what happened)
    """The store does not honour `If-None-Match: *`: evidence in it could be overwritten."""

    retryable = False


async def probe_conditional_create(store: MutableStore, *, writers: int = WRITERS) -> None:
    """Let `writers` create one key at once, with different bytes.

    Raises UnsafeStore unless exactly one wins, its bytes are there and a later create loses;
    StoreError for trouble with the store itself. The key is deleted afterwards.
    """
    key = f"probe/{secrets.token_hex(16)}"
    try:
        await _compete(store, key, writers)
    except StoreError:
        with contextlib.suppress(StoreError):  # the first trouble is the one to tell
            await store.delete([key])
        raise
    await store.delete([key])


async def _compete(store: MutableStore, key: str, writers: int) -> None:
    bodies = [f"writer {number}".encode() for number in range(writers)]
    won = await asyncio.gather(*(_wins(store, key, body) for body in bodies))
    winners = [body for body, win in zip(bodies, won, strict=True) if win]
    if len(winners) != 1:
        raise UnsafeStore(f"{len(winners)} of {writers} conditional creates of one key won")
    if await store.get(key) != winners[0]:
        raise UnsafeStore("the stored bytes are not those of the writer that won")
    if await _wins(store, key, b"late"):
        raise UnsafeStore("a later conditional create replaced an object")


async def _wins(store: MutableStore, key: str, body: bytes) -> bool:
    try:
        return await store.create(key, body)
    except ObjectExists:
        return False
