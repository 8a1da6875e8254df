"""Where an episode stands."""

from stayer_evaluator.episode import cursor as cursors
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EpisodeCursor


def test_a_round_takes_what_was_spent_since_the_rounds_before():
    cursor = cursors.spent(EpisodeCursor(), 40.0)
    cursor = cursors.after_round(cursor, FailureMode.NONE, retries=2, changed=True)
    cursor = cursors.after_step(cursor, 0, 65.0)

    assert cursors.finished_seconds(cursor) == 40.0
    assert cursors.seconds_in_round(cursor) == 25.0
    assert cursor.rounds[0].rate_limit_retries == 2
    assert (cursor.round, cursor.step) == (2, 0)


def test_a_new_round_begins_with_its_first_step():
    cursor = cursors.after_step(EpisodeCursor(), 4, 1.0)
    assert cursors.next_step(cursor) == 5

    cursor = cursors.after_round(cursor, FailureMode.NONE, retries=0, changed=False)
    assert cursors.next_step(cursor) == 0
    assert cursor.rounds[-1].cause == "first"

    cursor = cursors.after_round(cursor, FailureMode.NONE, retries=0, changed=False)
    assert cursor.rounds[-1].cause == "external_restart"


def test_a_restart_is_no_round():
    cursor = cursors.after_restart(cursors.after_step(EpisodeCursor(), 1, 3.0))

    assert (cursor.round, cursor.step, cursor.spent_seconds) == (1, 1, 3.0)
    assert cursor.infra_restarts == 1


def test_the_furthest_cursor_has_more_rounds_then_steps_then_time():
    start = EpisodeCursor()
    step = cursors.after_step(start, 0, 5.0)
    later = cursors.spent(step, 6.0)
    next_round = cursors.after_round(start, FailureMode.NONE, retries=0, changed=False)

    assert cursors.furthest(start, step) is step
    assert cursors.furthest(later, step) is later
    assert cursors.furthest(later, next_round) is next_round


def test_a_round_that_has_not_begun_is_not_shown():
    start = EpisodeCursor()
    working = cursors.spent(start, 5.0)
    between = cursors.after_round(working, FailureMode.NONE, retries=0, changed=True)

    shown = [start, working, between, cursors.spent(between, 6.0)]

    assert [cursors.latest_round(cursor) for cursor in shown] == [1, 1, 1, 2]
