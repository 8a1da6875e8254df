"""The run that the others are compared with."""

import pytest

from makers_outcome import Outcome

pytestmark = pytest.mark.cluster


def test_the_calm_run_shows_every_kind_of_event(calm: Outcome) -> None:
    assert calm.valid
    assert calm.metrics["resolved"] is True
    assert calm.metrics["sigma"] == ("duration-text", "duration-words", "retry-schedule")
    kinds = [kind for kind, _, _ in calm.history]
    assert kinds.count("implemented") == 3
    assert kinds.count("unit_cleared") == 3
    assert [
        (kind, unit) for kind, _, unit in calm.history if kind in ("regression", "recovery")
    ] == [("regression", "duration-text"), ("recovery", "duration-text")]
    assert all(column.canaries_hold for column in calm.columns)
