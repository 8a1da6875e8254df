"""The outer loop of evaluation.md §5: does another round start, and how long may it take."""

from dataclasses import dataclass

from stayer_evaluator.episode.cursor import finished_seconds
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EpisodeCursor
from stayer_evaluator.records.trial import LoopProfile

LEAST_SECONDS = 60.0
"""No further round starts with less time left. The first one always does: a budget below it is
the user's own choice."""

IDLE_ROUNDS = 3
"""An unbounded loop stops after so many rounds in a row that change nothing."""

CONTINUE_AFTER = frozenset(
    {FailureMode.NONE, FailureMode.AGENT_TIMEOUT, FailureMode.AGENT_RATE_LIMITED}
)


@dataclass(frozen=True, slots=True)
class Round:
    """Start (or go on with) this round."""

    number: int
    seconds: float
    """The whole limit of the round; what it has spent already counts against it."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The episode is over."""

    failure_mode: FailureMode
    message: str


def round_limit(count: int, number: int, remaining: float) -> float:
    """Seconds of round `number` of `count`: remaining / (count − number + 1); 0 = unbounded loop,
    whose rounds get all that remains (evaluation.md §5).
    """
    return remaining if count == 0 else remaining / max(1, count - number + 1)


def next_round(
    loop: LoopProfile,
    budget: float,
    cursor: EpisodeCursor,
    residual: tuple[str, ...],
    *,
    max_rounds: int | None = None,
) -> Round | Finish:
    """What comes after the finished rounds of `cursor`.

    `budget` is the agent time of the whole episode in seconds, `residual` the requirements without
    a patch file, `max_rounds` a cap of the harness.
    """
    number = len(cursor.rounds) + 1
    remaining = budget - finished_seconds(cursor)
    if cursor.rounds:
        reason = _over(_count(loop, max_rounds), remaining, cursor, residual)
        if reason is not None:
            return reason
    return Round(number, round_limit(_count(loop, max_rounds), number, max(0.0, remaining)))


def _count(loop: LoopProfile, max_rounds: int | None) -> int:
    if max_rounds is None:
        return loop.outer_loop_count
    return min(loop.outer_loop_count or max_rounds, max_rounds)


def _over(
    count: int, remaining: float, cursor: EpisodeCursor, residual: tuple[str, ...]
) -> Finish | None:
    last = cursor.rounds[-1].failure_mode
    done = len(cursor.rounds)
    if last not in CONTINUE_AFTER:
        return Finish(last, f"round {done} ended with {last}")
    if not residual:
        return Finish(last, "every requirement has its patch file")
    if count and done >= count:
        return Finish(last, f"rounds done: {count}")
    if remaining < LEAST_SECONDS:
        return Finish(FailureMode.AGENT_TIMEOUT, f"{remaining:.0f} s are left, too few for a round")
    if not count and _idle(cursor):
        return Finish(last, f"the last {IDLE_ROUNDS} rounds changed nothing")
    return None


def _idle(cursor: EpisodeCursor) -> bool:
    latest = cursor.rounds[-IDLE_ROUNDS:]
    return len(latest) == IDLE_ROUNDS and not any(record.changed for record in latest)


def backoff_seconds(loop: LoopProfile, retries: int, left: float) -> float | None:
    """Wait before another try after a rate-limit answer, `retries` of which were made already in
    this round: doubling from the profile's first. Null: no more tries, or the round's time `left`
    would be spent waiting (evaluation.md §5).
    """
    if retries >= loop.rate_limit_retries_per_round:
        return None
    wait = float(loop.rate_limit_backoff_seconds * 2 ** min(retries, 32))
    return wait if wait < left else None


def residual(units: tuple[str, ...], implemented: tuple[str, ...]) -> tuple[str, ...]:
    """Units without a non-empty patch file, in the task's order."""
    done = frozenset(implemented)
    return tuple(unit for unit in units if unit not in done)
