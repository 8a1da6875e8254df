import pytest

from durations import DurationError
from durations.text import dump, parse, parts


def test_reads_units_from_weeks_to_seconds():
    assert parse("1w2d3h4m5s") == 604800 + 2 * 86400 + 3 * 3600 + 4 * 60 + 5
    assert parse(" 90M ") == 5400
    assert parse("-1h") == -3600


def test_refuses_what_is_no_duration():
    for text in ["", "5", "h", "1h 5m", "5m1h", "1h1h", "-", "1.5h", "--1h"]:
        with pytest.raises(DurationError):
            parse(text)


def test_parts_leave_out_zeros():
    assert parts(-3605) == [(1, "h"), (5, "s")]
    assert parts(0) == []


def test_writes_the_shortest_text_that_reads_back():
    for text in ["0s", "59s", "1m", "1h30m", "-2d", "1w1s"]:
        assert dump(parse(text)) == text
    assert dump(parse("90m")) == "1h30m"
