from itertools import islice

import pytest

from durations import DurationError
from durations.schedule import Schedule, parse_schedule


def test_reads_a_schedule():
    assert parse_schedule("1s") == Schedule(first=1)
    assert parse_schedule(" 5s  x2 max 1m for 1h30m ") == Schedule(5, 2, 60, 5400)


def test_refuses_what_is_no_schedule():
    for text in ["", "x2", "1s x0", "0s", "1s max 0s", "1s for -5s", "1s 2s", "1s for 5m max 1m"]:
        with pytest.raises(DurationError):
            parse_schedule(text)


def test_waits_grow_up_to_the_largest():
    assert list(islice(parse_schedule("1s x3 max 10s").waits(), 5)) == [1, 3, 9, 10, 10]
    assert list(islice(parse_schedule("1m max 5s").waits(), 2)) == [5, 5]


def test_waits_end_before_they_exceed_the_total():
    assert list(parse_schedule("1s x2 for 7s").waits()) == [1, 2, 4]
    assert list(parse_schedule("1s x2 for 6s").waits()) == [1, 2]
    assert list(parse_schedule("1m for 5s").waits()) == []
