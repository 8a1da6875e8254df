"""How often a checkpoint is begun before it is given up."""

import asyncio

import pytest

from stayer_evaluator.adjudication.tries import MAX_LOST, MAX_STARTS, Tries
from stayer_evaluator.records.queue import Writer
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import MemoryStore

KEYS = TrialKeys("runs/ns/run-12345678/trial/")


def starts(fates: str) -> list[bool]:
    """Whether each start was allowed: one adjudicator after the other, `s`topped or `l`ost."""
    store = MemoryStore()

    async def live() -> list[bool]:
        allowed = []
        for number, fate in enumerate(fates, start=1):
            tries = Tries(store, KEYS, Writer(incarnation=number, nonce=f"n{number}"))
            allowed.append(await tries.begin(3))
            if fate == "s":
                await tries.forgive(3)
        return allowed

    return asyncio.run(live())


@pytest.mark.parametrize(
    ("fates", "given_up_at"),
    [
        pytest.param("l" * 4, MAX_LOST, id="lost-each-time"),
        pytest.param("slsls", 4, id="stopped-in-between"),
        pytest.param("s" * (MAX_STARTS + 2), MAX_STARTS, id="stopped-each-time"),
    ],
)
def test_a_checkpoint_is_given_up_in_the_end(fates: str, given_up_at: int) -> None:
    allowed = starts(fates)

    assert allowed == [index < given_up_at for index in range(len(fates))]


def test_stops_do_not_count_as_losses() -> None:
    assert starts("sssl" + "s") == [True] * 5
