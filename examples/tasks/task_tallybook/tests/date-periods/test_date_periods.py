from datetime import date

import pytest

from tallybook.errors import ParseError
from tallybook.periods import (
    Every,
    Span,
    floor,
    label,
    occurrences,
    parse_date,
    parse_every,
    parse_span,
    shift,
    split,
)

TODAY = date(2024, 5, 15)  # a Wednesday


@pytest.mark.parametrize(
    "text",
    ["2024-03-09", "2024/3/9", "2024.03.9", "20240309", " 2024-3-09 "],
    ids=["dashes", "slashes", "dots", "compact", "blanks-around"],
)
def test_reads_dates(text):
    assert parse_date(text) == date(2024, 3, 9)


def test_a_short_date_needs_a_default_year():
    assert parse_date("2/29", default_year=2024) == date(2024, 2, 29)
    with pytest.raises(ParseError):
        parse_date("2/29")


@pytest.mark.parametrize(
    "text",
    ["", "2024-02-30", "2024-3/9", "yesterday", "24-03-09"],
    ids=["empty", "no-such-day", "mixed-separators", "word", "short-year"],
)
def test_refuses_what_is_no_date(text):
    with pytest.raises(ParseError):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2024", date(2024, 1, 1), date(2025, 1, 1)),
        ("2024-q2", date(2024, 4, 1), date(2024, 7, 1)),
        ("2024Q4", date(2024, 10, 1), date(2025, 1, 1)),
        ("2024-12", date(2024, 12, 1), date(2025, 1, 1)),
        ("2025-w01", date(2024, 12, 30), date(2025, 1, 6)),
        ("2024-02-29", date(2024, 2, 29), date(2024, 3, 1)),
        ("2024-01..2024-q2", date(2024, 1, 1), date(2024, 7, 1)),
        ("2024-03..", date(2024, 3, 1), None),
        ("..2024-03", None, date(2024, 4, 1)),
    ],
    ids=[
        "year",
        "quarter",
        "quarter-without-dash",
        "december",
        "first-iso-week",
        "day",
        "from-to",
        "open-end",
        "open-start",
    ],
)
def test_absolute_spans(text, start, end):
    assert parse_span(text, TODAY) == Span(start, end)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", date(2024, 5, 15), date(2024, 5, 16)),
        ("Yesterday", date(2024, 5, 14), date(2024, 5, 15)),
        ("this week", date(2024, 5, 13), date(2024, 5, 20)),
        ("last quarter", date(2024, 1, 1), date(2024, 4, 1)),
        ("next year", date(2025, 1, 1), date(2026, 1, 1)),
        ("last 3 months", date(2024, 2, 1), date(2024, 5, 1)),
        ("next 2 weeks", date(2024, 5, 20), date(2024, 6, 3)),
        ("ytd", date(2024, 1, 1), date(2024, 5, 16)),
        ("mtd", date(2024, 5, 1), date(2024, 5, 16)),
    ],
    ids=[
        "today",
        "yesterday",
        "this-week",
        "last-quarter",
        "next-year",
        "last-3-months",
        "next-2-weeks",
        "ytd",
        "mtd",
    ],
)
def test_spans_relative_to_today(text, start, end):
    assert parse_span(text, TODAY) == Span(start, end)


@pytest.mark.parametrize(
    "text",
    ["2024-13", "2024-w54", "sometime", "2024-05..2024-03", "last 0 days"],
    ids=["month-13", "week-54", "word", "backwards", "last-0-days"],
)
def test_refuses_what_is_no_span(text):
    with pytest.raises(ParseError):
        parse_span(text, TODAY)


def test_a_span_is_half_open():
    span = parse_span("2024-02")
    assert date(2024, 2, 1) in span and date(2024, 2, 29) in span
    assert date(2024, 1, 31) not in span and date(2024, 3, 1) not in span
    assert (span.days, span.last) == (29, date(2024, 2, 29))
    assert date.max in Span(date(2024, 1, 1)) and Span().days is None


def test_intersection():
    both = parse_span("2024-01..2024-03").intersect(parse_span("2024-03.."))
    assert both == parse_span("2024-03")
    assert parse_span("2024-01").intersect(parse_span("2024-03")).is_empty()


def test_moving_by_months_stays_in_the_month():
    assert shift(date(2024, 1, 31), "month", 1) == date(2024, 2, 29)
    assert shift(date(2024, 3, 31), "month", -4) == date(2023, 11, 30)
    assert shift(date(2024, 2, 29), "year", 1) == date(2025, 2, 28)
    assert shift(date(2024, 11, 30), "quarter", 1) == date(2025, 2, 28)
    assert shift(date(2024, 2, 28), "week", 1) == date(2024, 3, 6)


def test_floor():
    assert [
        floor(TODAY, unit).isoformat() for unit in ("day", "week", "month", "quarter", "year")
    ] == [
        "2024-05-15",
        "2024-05-13",
        "2024-05-01",
        "2024-04-01",
        "2024-01-01",
    ]


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("monthly", Every("month")),
        ("Fortnightly", Every("week", 2)),
        ("every day", Every("day")),
        ("every 3 months", Every("month", 3)),
    ],
    ids=["monthly", "fortnightly", "every-day", "every-3-months"],
)
def test_reads_intervals(text, every):
    assert parse_every(text) == every
    assert parse_every(str(every)) == every


@pytest.mark.parametrize(
    "text",
    ["", "often", "every 0 days", "every two weeks"],
    ids=["empty", "word", "zero", "count-in-words"],
)
def test_refuses_what_is_no_interval(text):
    with pytest.raises(ParseError):
        parse_every(text)


def test_splitting_aligns_to_the_unit():
    span = parse_span("2024-01-15..2024-03-10")
    assert [str(period) for period in split(span, Every("month"))] == [
        "2024-01",
        "2024-02",
        "2024-03",
    ]
    clipped = split(span, Every("month"), clip=True)
    assert [str(period) for period in clipped] == [
        "2024-01-15..2024-01-31",
        "2024-02",
        "2024-03-01..2024-03-10",
    ]
    assert [p.days for p in split(parse_span("2024-01"), Every("week", 2))] == [14, 14, 14]


def test_an_open_span_cannot_be_split():
    with pytest.raises(ValueError):
        split(parse_span("2024.."), Every("month"))


def test_occurrences_count_from_their_anchor():
    days = list(occurrences(Every("month"), date(2024, 1, 31), parse_span("2024-02..2024-04")))
    assert days == [date(2024, 2, 29), date(2024, 3, 31), date(2024, 4, 30)]
    days = list(occurrences(Every("week", 2), date(2024, 1, 3), Span(None, date(2024, 2, 1))))
    assert days == [date(2024, 1, 3), date(2024, 1, 17), date(2024, 1, 31)]


@pytest.mark.parametrize(
    "text",
    [
        "2024",
        "2024-q3",
        "2024-07",
        "2024-w09",
        "2024-05-15",
        "2024-05-15..2024-05-17",
        "..2024-05-15",
        "2024-05-15..",
        "..",
    ],
    ids=["year", "quarter", "month", "week", "day", "days", "until", "from", "always"],
)
def test_labels_read_back(text):
    assert label(parse_span(text)) == text


def test_labels_are_the_shortest_that_fit():
    assert label(Span(date(2024, 1, 1), date(2025, 1, 1))) == "2024"
    assert label(Span(date(2024, 4, 1), date(2024, 7, 1))) == "2024-q2"
    assert label(Span(date(2024, 4, 1), date(2024, 6, 1))) == "2024-04-01..2024-05-31"
