"""Time limits of a trial (evaluation.md §5 and §10.12)."""

from __future__ import annotations

from typing import Any

import pytest

from makers_run import make_task
from stayer_operator.api.run import TimeoutsSpec
from stayer_operator.core.run.timeouts import resolve_timeouts

HOUR = 3600


@pytest.mark.parametrize(
    ("settings", "own", "agent", "test"),
    [
        ({}, 1800, 1800, 600),
        ({"multiplierPercent": 150}, 1800, 2700, 900),
        ({"multiplierPercent": 33}, 1801, 595, 198),
        ({"preset": "paper"}, 1800, 2 * HOUR, 600),
        ({"preset": "paper"}, 5 * HOUR, 5 * HOUR, 600),
        ({"preset": "paper"}, 48 * HOUR, 24 * HOUR, 600),
        ({"preset": "paper", "multiplierPercent": 1000}, 5 * HOUR, 24 * HOUR, 6000),
        ({"preset": "paper", "agentSeconds": 60}, 5 * HOUR, 60, 600),
        ({"testSeconds": 30, "multiplierPercent": 200}, 1800, 3600, 30),
    ],
    ids=[
        "a task's own limits count",
        "the multiplier counts for both",
        "fractions are rounded up",
        "paper gives at least two hours",
        "paper leaves what lies between",
        "paper gives at most a day",
        "paper bounds what was multiplied",
        "an override counts as it stands",
        "an overridden limit is not multiplied",
    ],
)
def test_limits(settings: dict[str, Any], own: float, agent: int, test: int):
    task = make_task(max_agent_timeout_sec=own, max_test_timeout_sec=600)

    resolved = resolve_timeouts(TimeoutsSpec.model_validate(settings), task)

    assert (resolved.agent_seconds, resolved.test_seconds) == (agent, test)
    assert resolved.drain_seconds == 7200
