"""Finding the end of a series of keys with dense numbers, without listing (security.md F21)."""

from collections.abc import Callable

from stayer_evaluator.storage.store import ObjectMissing, ObjectStore


async def dense_length(store: ObjectStore, key: Callable[[int], str]) -> int:
    """How many of key(0), key(1), … exist, none missing between: about 2·log2(n) reads.

    Raises StoreError.
    """
    high = 1
    while await _has(store, key(high - 1)):
        high *= 2
    low = high // 2
    while low < high - 1:
        middle = (low + high) // 2
        if await _has(store, key(middle - 1)):
            low = middle
        else:
            high = middle
    return low


async def _has(store: ObjectStore, key: str) -> bool:
    try:
        await store.get_range(key, 0, 1)
    except ObjectMissing:
        return False
    return True
