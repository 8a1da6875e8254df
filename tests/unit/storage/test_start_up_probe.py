"""The start-up probe tells a store that keeps its promise from ones that do not."""

from __future__ import annotations

import asyncio

import pytest

from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.probe import UnsafeStore, probe_conditional_create


class LastWins(MemoryStore):
    """Ignores the condition, as servers without conditional writes do."""

    async def create(self, key: str, data: bytes) -> bool:
        self.objects[key] = data
        return True


class ThreeWin(MemoryStore):
    """Lets three writers through at once, as one server did."""

    async def create(self, key: str, data: bytes) -> bool:
        if self.writes < 3:
            self.objects[key] = data
            self.writes += 1
            return True
        return await super().create(key, data)


class Liar(MemoryStore):
    """Stores other bytes than those of the winner."""

    async def get(self, key: str) -> bytes:
        return b"something else"


def test_a_good_store_passes_and_is_left_clean() -> None:
    store = MemoryStore()

    asyncio.run(probe_conditional_create(store))

    assert store.writes == 1
    assert store.objects == {}


@pytest.mark.parametrize("kind", [LastWins, ThreeWin, Liar])
def test_an_unsafe_store_is_found_out_and_left_clean(kind: type[MemoryStore]) -> None:
    store = kind()

    with pytest.raises(UnsafeStore):
        asyncio.run(probe_conditional_create(store))
    assert store.objects == {}
