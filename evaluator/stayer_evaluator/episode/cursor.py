"""Where an episode stands, as pure functions of its cursor."""

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EpisodeCursor, RoundRecord


def finished_seconds(cursor: EpisodeCursor) -> float:
    """Agent time of the finished rounds, back-off included."""
    return sum(record.seconds for record in cursor.rounds)


def seconds_in_round(cursor: EpisodeCursor) -> float:
    """Agent time spent in the round that is under way."""
    return max(0.0, cursor.spent_seconds - finished_seconds(cursor))


def latest_round(cursor: EpisodeCursor) -> int:
    """The round that is under way, or the last one: the next may never begin."""
    between = cursor.rounds and not seconds_in_round(cursor)
    return len(cursor.rounds) if between else cursor.round


def next_step(cursor: EpisodeCursor) -> int:
    """Index of the step to do next in the round that is under way."""
    return 0 if cursor.step is None else cursor.step + 1


def after_step(cursor: EpisodeCursor, step: int, spent: float) -> EpisodeCursor:
    """The cursor once that step is finished."""
    return cursor.model_copy(update={"step": step, "spent_seconds": spent})


def spent(cursor: EpisodeCursor, seconds: float) -> EpisodeCursor:
    """The cursor with that much agent time spent in all."""
    return cursor.model_copy(update={"spent_seconds": seconds})


def after_round(
    cursor: EpisodeCursor, failure: FailureMode, *, retries: int, changed: bool
) -> EpisodeCursor:
    """The cursor once the round under way is over; it names the round that would come next."""
    record = RoundRecord(
        number=cursor.round,
        seconds=seconds_in_round(cursor),
        failure_mode=failure,
        cause="first" if cursor.round == 1 else "external_restart",
        rate_limit_retries=retries,
        changed=changed,
    )
    return cursor.model_copy(
        update={"round": cursor.round + 1, "step": None, "rounds": (*cursor.rounds, record)}
    )


def after_restart(cursor: EpisodeCursor) -> EpisodeCursor:
    """The cursor of a recorder that goes on in another pod: no new round (design.md §4)."""
    return cursor.model_copy(update={"infra_restarts": cursor.infra_restarts + 1})


def furthest(*cursors: EpisodeCursor) -> EpisodeCursor:
    """The one that got on the furthest."""
    return max(cursors, key=lambda c: (len(c.rounds), next_step(c), c.spent_seconds))
