import pytest

from stayer_operator.reconcile.queue import SPARE_TIMERS, RetryPace, WorkQueue


def drain(queue: WorkQueue[str], now: float) -> list[str]:
    taken = []
    while (key := queue.take(now)) is not None:
        queue.done(key)
        taken.append(key)
    return taken


def test_keys_come_once_in_the_order_in_which_they_were_added() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("b", "a", "b"):
        queue.add(key)

    assert drain(queue, 0) == ["b", "a"]


def test_key_under_way_is_given_to_nobody_else_and_comes_again() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    taken = queue.take(0)
    queue.add("a")

    assert taken == "a"
    assert queue.take(0) is None
    queue.done("a")
    assert queue.take(0) == "a"


def test_key_for_later_comes_at_its_earliest_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for when in (30, 10, 20):
        queue.add_at("a", when)

    assert queue.next_time() == 10
    assert drain(queue, 9.9) == []
    assert drain(queue, 10) == ["a"]
    assert queue.next_time() is None
    assert drain(queue, 99) == []


def test_taking_a_key_drops_its_timer() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_at("a", 10)
    queue.add("a")

    assert drain(queue, 0) == ["a"]
    assert drain(queue, 10) == []


def test_timer_set_while_the_key_is_under_way_stays() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.take(0)
    queue.add_at("a", 10)
    queue.done("a")

    assert drain(queue, 10) == ["a"]


def test_back_off_doubles_up_to_its_bound_and_begins_anew_after_success() -> None:
    queue: WorkQueue[str] = WorkQueue(RetryPace(first=1, longest=8))

    waits = [queue.retry("a", 0) for _ in range(8)]
    queue.succeeded("a")

    for count, wait in enumerate(waits):
        full = min(8, 2**count)
        assert full / 2 <= wait <= full
    assert queue.retry("a", 0) <= 1


def test_retries_of_all_keys_share_one_bucket() -> None:
    queue: WorkQueue[str] = WorkQueue(RetryPace(first=0.01, longest=0.01, rate=2, burst=4))

    waits = [queue.retry(f"key {number}", 100) for number in range(10)]

    assert max(waits[:4]) <= 0.01
    assert waits[-1] == pytest.approx(3, abs=0.1)
    assert queue.retry("later", 1000) <= 0.01


def test_length_counts_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.take(0)
    queue.add("a")

    assert len(queue) == 2


def test_timers_that_wait_for_nothing_any_more_are_dropped() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for passes in range(10 * SPARE_TIMERS):
        queue.add_at("trial", 3600.0 + passes)
        queue.add("trial")
        assert queue.take(0.0) == "trial"
        queue.done("trial")
    queue.add_at("trial", 7200.0)
    queue.add_at("other", 7300.0)

    assert len(queue._timers) <= SPARE_TIMERS + 4
    assert queue.next_time() == 7200.0
    assert queue.take(7200.0) == "trial"
    queue.done("trial")
    assert queue.next_time() == 7300.0
