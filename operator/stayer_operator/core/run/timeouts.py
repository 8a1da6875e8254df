"""Time limits of a trial from the run's settings and the task's own limits."""

from math import ceil

from stayer_evaluator.records.run import RunTask
from stayer_evaluator.records.trial import Timeouts
from stayer_operator.api.run import TimeoutsSpec

PAPER_LEAST_SECONDS = 2 * 3600
PAPER_MOST_SECONDS = 24 * 3600


def resolve_timeouts(settings: TimeoutsSpec, task: RunTask) -> Timeouts:
    """All in whole seconds, rounded up. A limit of the run counts as it stands; a task's own is
    multiplied, and with the preset `paper` then brought into [2 h, 24 h] (evaluation.md §10.12).
    """
    return Timeouts(
        agent_seconds=settings.agent_seconds or _agent(settings, task),
        test_seconds=settings.test_seconds or _scaled(settings, task.max_test_timeout_sec),
        drain_seconds=settings.drain_seconds,
    )


def _agent(settings: TimeoutsSpec, task: RunTask) -> int:
    seconds = _scaled(settings, task.max_agent_timeout_sec)
    if settings.preset == "paper":
        return min(max(seconds, PAPER_LEAST_SECONDS), PAPER_MOST_SECONDS)
    return seconds


def _scaled(settings: TimeoutsSpec, seconds: float) -> int:
    return max(1, ceil(seconds * settings.multiplier_percent / 100))
