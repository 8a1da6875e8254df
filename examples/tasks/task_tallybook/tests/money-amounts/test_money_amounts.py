from decimal import Decimal

import pytest

from tallybook.errors import CommodityError, ParseError
from tallybook.money import Amount, Style, StyleBook, allocate, format_amount, parse_amount
from tallybook.purse import Purse


def amount(text):
    return parse_amount(text)


@pytest.mark.parametrize(
    ("text", "quantity", "commodity"),
    [
        ("$1,234.50", "1234.50", "$"),
        ("-$5", "-5", "$"),
        ("$-5.25", "-5.25", "$"),
        ("10 EUR", "10", "EUR"),
        ("EUR 10.5", "10.5", "EUR"),
        ('3 "ACME 2024"', "3", "ACME 2024"),
        ("-.5", "-0.5", ""),
    ],
    ids=[
        "grouped",
        "sign-first",
        "sign-inside",
        "symbol-after",
        "symbol-before",
        "quoted-symbol",
        "bare",
    ],
)
def test_reads_the_usual_ways_to_write_an_amount(text, quantity, commodity):
    read = amount(text)
    assert (read.quantity, read.commodity) == (Decimal(quantity), commodity)


@pytest.mark.parametrize(
    "text",
    ["", "EUR", "$5 EUR", "-$-5", "1,23.00", "1.2.3", "12,3456"],
    ids=[
        "empty",
        "only-symbol",
        "two-symbols",
        "two-signs",
        "short-group",
        "two-points",
        "long-group",
    ],
)
def test_refuses_what_is_no_amount(text):
    with pytest.raises(ParseError):
        amount(text)


def test_style_is_kept_but_takes_no_part_in_equality():
    read = amount("$1,234.5")
    assert read.style == Style(prefix=True, spaced=False, places=1, grouped=True)
    assert read == Amount(Decimal("1234.50"), "$")
    assert hash(read) == hash(Amount(Decimal("1234.50"), "$"))


@pytest.mark.parametrize(
    "text",
    ["$1,234.50", "-$5", "10.0 EUR", "-EUR 10", '3 "ACME 2024"', "7"],
    ids=["grouped", "negative", "places", "symbol-before", "quoted-symbol", "bare"],
)
def test_formatting_gives_back_what_was_read(text):
    assert str(amount(text)) == text


def test_formatting_rounds_half_to_even_and_drops_the_sign_of_zero():
    style = Style(prefix=True, spaced=False, places=2)
    assert format_amount(Amount(Decimal("0.125"), "$"), style) == "$0.12"
    assert format_amount(Amount(Decimal("0.135"), "$"), style) == "$0.14"
    assert format_amount(Amount(Decimal("-0.004"), "$"), style) == "$0.00"


def test_an_amount_without_a_style_shows_all_its_digits():
    assert str(Amount(Decimal("1234.5000"), "EUR")) == "1234.5000 EUR"


def test_arithmetic_stays_within_a_commodity():
    assert amount("$5") + amount("$2.50") == amount("$7.50")
    assert amount("$5") - amount("$7") == amount("-$2")
    assert 3 * amount("2 EUR") == amount("6 EUR")
    assert amount("7 EUR") / 2 == amount("3.5 EUR")
    assert abs(-amount("$5")) == amount("$5")
    with pytest.raises(CommodityError):
        amount("$5") + amount("5 EUR")
    with pytest.raises(CommodityError):
        amount("$5") < amount("5 EUR")


def test_allocation_loses_no_cent():
    shares = allocate(amount("$100.00"), [1, 1, 1])
    assert [str(share) for share in shares] == ["$33.34", "$33.33", "$33.33"]
    shares = allocate(amount("-$0.05"), [1, 3])
    assert [share.quantity for share in shares] == [Decimal("-0.01"), Decimal("-0.04")]
    assert allocate(amount("10 EUR"), [0, 2, 1]) == [
        amount("0 EUR"),
        amount("7 EUR"),
        amount("3 EUR"),
    ]


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1]], ids=["none", "all-zero", "negative"])
def test_allocation_needs_sensible_weights(weights):
    with pytest.raises(ValueError):
        allocate(amount("$1.00"), weights)


def test_style_book_takes_the_first_layout_and_the_most_places():
    book = StyleBook()
    book.learn(amount("$1,000"))
    book.learn(amount("5.125 $"))
    assert book.format(Amount(Decimal("-1234.5"), "$")) == "-$1,234.500"


def test_style_book_never_changes_a_pinned_style():
    book = StyleBook()
    book.pin("EUR", Style(places=0))
    book.learn(amount("EUR 1.25"))
    assert book.is_pinned("EUR") and not book.is_pinned("$")
    assert book.format(Amount(Decimal("7.6"), "EUR")) == "8 EUR"


def test_purse_sums_by_commodity_and_forgets_zeros():
    purse = Purse([amount("$5"), amount("3 EUR"), amount("-$5"), amount("1 EUR")])
    assert purse == Purse([amount("4 EUR")])
    assert purse.commodities == ("EUR",)
    assert purse.single() == amount("4 EUR")
    assert purse.quantity("$") == 0
    assert len(purse) == 1 and not Purse()


def test_purse_arithmetic_leaves_its_operands_alone():
    one, two = Purse([amount("$5")]), Purse([amount("2 EUR")])
    total = one + two - amount("$1")
    assert total == Purse([amount("$4"), amount("2 EUR")])
    assert -total == total * -1
    assert one == Purse([amount("$5")])
    assert Purse.total([one, two, one]) == Purse([amount("$10"), amount("2 EUR")])
    assert hash(one + two) == hash(two + one)


def test_purse_is_zero_within_tolerances():
    purse = Purse([amount("$0.004"), amount("0.3 EUR")])
    assert not purse.is_zero()
    assert not purse.is_zero({"$": Decimal("0.005")})
    assert purse.is_zero({"$": Decimal("0.005"), "EUR": Decimal("0.3")})


def test_purse_is_written_in_the_order_of_the_symbols():
    book = StyleBook()
    book.learn(amount("$1.00"))
    purse = Purse([amount("2 EUR"), amount("$3")])
    assert purse.format(book) == "$3.00, 2 EUR"
    assert Purse().lines(book) == ["0"]
