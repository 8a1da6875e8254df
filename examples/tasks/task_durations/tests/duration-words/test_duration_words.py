import pytest

from durations.words import say


def test_says_the_two_largest_units():
    assert say(7505) == "2 hours and 5 minutes"
    assert say(3600) == "1 hour"
    assert say(86401) == "1 day and 1 second"


def test_the_number_of_units_can_be_chosen():
    assert say(694861, limit=1) == "1 week"
    assert say(694861, limit=4) == "1 week, 1 day, 1 hour and 1 minute"
    with pytest.raises(ValueError):
        say(5, limit=0)


def test_says_nothing_and_the_past():
    assert say(0) == "no time"
    assert say(-120) == "2 minutes ago"
