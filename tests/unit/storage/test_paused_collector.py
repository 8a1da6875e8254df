"""Python's cyclic collector around sections that build large data."""

import gc
from collections.abc import Iterator

import pytest

from stayer_evaluator.storage.pause import collector_paused


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_a_section_made_counts_as_old_if_wanted() -> None:
    with collector_paused(count_as_old=True):
        assert not gc.isenabled()
        made = [[number] for number in range(5_000)]

    assert gc.isenabled()
    old = {id(item) for item in gc.get_objects(generation=2)}
    assert all(id(item) in old for item in made)


@pytest.mark.usefixtures("thawed")
def test_what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()

    with collector_paused():
        pass

    assert gc.get_freeze_count() >= frozen - 1_000


def test_an_inner_section_does_not_end_the_outer_one() -> None:
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()
