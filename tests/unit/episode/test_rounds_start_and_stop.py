"""The outer loop's decisions (evaluation.md §5)."""

import pytest

from stayer_evaluator.episode.rounds import (
    Finish,
    Round,
    backoff_seconds,
    next_round,
    residual,
    round_limit,
)
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EpisodeCursor, RoundRecord
from stayer_evaluator.records.trial import LoopProfile

NONE = FailureMode.NONE
TIMEOUT = FailureMode.AGENT_TIMEOUT
LIMITED = FailureMode.AGENT_RATE_LIMITED
OPEN = ("parser",)


def cursor(*rounds: tuple[float, FailureMode, bool], spent: float | None = None) -> EpisodeCursor:
    """Finished rounds as (seconds, failure, changed)."""
    records = tuple(
        RoundRecord(number=n, seconds=seconds, failure_mode=failure, changed=changed)
        for n, (seconds, failure, changed) in enumerate(rounds, 1)
    )
    total = sum(record.seconds for record in records)
    return EpisodeCursor(
        round=len(records) + 1, spent_seconds=total if spent is None else spent, rounds=records
    )


def loop(count: int = 3, **fields: int) -> LoopProfile:
    return LoopProfile(outer_loop_count=count, **fields)


@pytest.mark.parametrize(
    ("count", "number", "remaining", "limit"),
    [(3, 1, 1800, 600), (3, 2, 1500, 750), (3, 3, 700, 700), (1, 1, 1800, 1800), (0, 7, 500, 500)],
)
def test_a_round_gets_its_share_of_what_remains(count, number, remaining, limit):
    assert round_limit(count, number, remaining) == limit


@pytest.mark.parametrize(
    ("profile", "budget", "done", "left", "expected"),
    [
        pytest.param(loop(), 1800, cursor(), OPEN, Round(1, 600), id="the first round starts"),
        pytest.param(
            loop(), 10, cursor(), OPEN, Round(1, 10 / 3), id="also with less than a minute"
        ),
        pytest.param(
            loop(), 1800, cursor(), (), Round(1, 600), id="also without any requirement"
        ),
        pytest.param(
            loop(), 1800, cursor((300, NONE, True)), OPEN, Round(2, 750), id="the next after none"
        ),
        pytest.param(
            loop(), 1800, cursor((600, TIMEOUT, True)), OPEN, Round(2, 600),
            id="the next after a timeout",
        ),
        pytest.param(
            loop(), 1800, cursor((600, LIMITED, True)), OPEN, Round(2, 600),
            id="the next after a rate limit",
        ),
        pytest.param(
            loop(), 1800, cursor((300, NONE, True), spent=400), OPEN, Round(2, 750),
            id="a resumed round keeps its limit",
        ),
        pytest.param(
            loop(0), 1800, cursor((300, NONE, True)), OPEN, Round(2, 1500),
            id="an unbounded round gets all that remains",
        ),
        pytest.param(
            loop(0), 1800, cursor(*[(1, NONE, True), *[(1, NONE, False)] * 2]), OPEN,
            Round(4, 1797), id="two idle rounds are no stop",
        ),
        pytest.param(
            loop(), 180, cursor((120, NONE, True)), OPEN, Round(2, 30),
            id="exactly a minute left is enough",
        ),
    ],
)  # fmt: skip
def test_a_round_starts(profile, budget, done, left, expected):
    assert next_round(profile, budget, done, left) == expected


@pytest.mark.parametrize(
    ("profile", "budget", "done", "left", "failure"),
    [
        pytest.param(loop(1), 1800, cursor((9, NONE, True)), OPEN, NONE, id="all rounds done"),
        pytest.param(loop(), 1800, cursor((9, NONE, True)), (), NONE, id="nothing is left"),
        pytest.param(
            loop(), 1800, cursor((9, TIMEOUT, True)), (), TIMEOUT,
            id="nothing is left, the last failure stays",
        ),
        pytest.param(
            loop(), 120, cursor((60.5, NONE, True)), OPEN, TIMEOUT, id="less than a minute left"
        ),
        pytest.param(
            loop(), 1800, cursor((9, FailureMode.AGENT_AUTH_ERROR, True)), OPEN,
            FailureMode.AGENT_AUTH_ERROR, id="a failure that another round will not mend",
        ),
        pytest.param(
            loop(0), 1800, cursor(*[(1, NONE, False)] * 3), OPEN, NONE,
            id="an unbounded loop stops after three idle rounds",
        ),
    ],
)  # fmt: skip
def test_the_episode_ends(profile, budget, done, left, failure):
    decision = next_round(profile, budget, done, left)

    assert isinstance(decision, Finish)
    assert decision.failure_mode is failure
    assert decision.message


def test_a_harness_can_cap_the_rounds():
    assert isinstance(next_round(loop(), 1800, cursor((1, NONE, True)), OPEN, max_rounds=1), Finish)
    assert next_round(loop(0), 1800, cursor(), OPEN, max_rounds=1) == Round(1, 1800)
    assert next_round(loop(2), 1800, cursor(), OPEN, max_rounds=5) == Round(1, 900)


def test_three_rounds_of_equal_use_share_the_time_equally():
    seen = cursor()
    for number in (1, 2, 3):
        decision = next_round(loop(), 1800, seen, OPEN)
        assert decision == Round(number, 600)
        seen = cursor(*[(600, TIMEOUT, True)] * number)
    assert isinstance(next_round(loop(), 1800, seen, OPEN), Finish)


def test_back_off_doubles_and_stays_within_tries_and_time():
    profile = loop(rate_limit_retries_per_round=3, rate_limit_backoff_seconds=45)

    assert [backoff_seconds(profile, tries, 1e6) for tries in range(4)] == [45, 90, 180, None]
    assert backoff_seconds(profile, 1, 90) is None
    assert backoff_seconds(profile, 1, 90.1) == 90


def test_the_residual_is_what_has_no_patch_file_in_the_tasks_order():
    assert residual(("c", "a", "b"), ("a", "unknown")) == ("c", "b")
