from datetime import date
from decimal import Decimal

import pytest

from tallybook.model import PriceQuote
from tallybook.money import parse_amount as amount
from tallybook.prices import PriceBook, unit_cost, unrealised_gains
from tallybook.purse import Purse
from tallybook.reader import read_text

JANUARY, FEBRUARY, MARCH = date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31)


def book(*lines):
    return PriceBook.from_journal(read_text("".join(f"P {line}\n" for line in lines)))


def test_the_newest_quote_up_to_the_day_counts():
    prices = book("2024-01-10 EUR $1.10", "2024-02-10 EUR $1.20", "2024-01-20 EUR $1.15")
    assert prices.rate("EUR", "$", JANUARY) == Decimal("1.15")
    assert prices.rate("EUR", "$", date(2024, 1, 10)) == Decimal("1.10")
    assert prices.rate("EUR", "$", MARCH) == Decimal("1.20")
    assert prices.rate("EUR", "$", date(2024, 1, 9)) is None


def test_of_one_day_the_later_quote_wins():
    assert book("2024-01-10 EUR $1", "2024-01-10 EUR $2").rate("EUR", "$", MARCH) == 2


def test_quotes_count_in_both_directions():
    prices = book("2024-01-10 EUR $1.25")
    assert prices.rate("$", "EUR", MARCH) == Decimal("0.8")
    assert prices.rate("$", "$", date(1999, 1, 1)) == 1


def test_of_both_directions_the_newer_wins_and_the_direct_one_on_a_tie():
    prices = book("2024-01-10 EUR $1.25", "2024-02-10 $ 0.5 EUR")
    assert prices.rate("EUR", "$", JANUARY) == Decimal("1.25")
    assert prices.rate("EUR", "$", MARCH) == 2
    prices = book("2024-01-10 EUR $1.25", "2024-01-10 $ 0.5 EUR")
    assert prices.rate("EUR", "$", MARCH) == Decimal("1.25")
    assert prices.rate("$", "EUR", MARCH) == Decimal("0.5")


def test_chains_take_the_fewest_steps_then_the_alphabet():
    prices = book(
        "2024-01-01 ACME 10 EUR",
        "2024-01-01 ACME 20 CHF",
        "2024-01-01 EUR $2",
        "2024-01-01 CHF $3",
        "2024-03-01 ACME $7",
    )
    assert prices.rate("ACME", "$", JANUARY) == 60
    assert prices.rate("ACME", "$", MARCH) == 7
    assert prices.rate("ACME", "GOLD", MARCH) is None
    assert prices.rate("GOLD", "$", MARCH) is None


def test_zero_prices_and_prices_in_themselves_are_ignored():
    prices = PriceBook(
        [
            PriceQuote(JANUARY, "EUR", amount("$0")),
            PriceQuote(JANUARY, "EUR", amount("2 EUR")),
        ]
    )
    assert prices.rate("$", "EUR", MARCH) is None
    assert prices.quoted("EUR", MARCH) is None


def test_the_quote_of_a_commodity_in_whatever_it_was_quoted():
    prices = book("2024-01-10 ACME $40", "2024-02-10 ACME 35 EUR")
    assert prices.quoted("ACME", JANUARY) == PriceQuote(date(2024, 1, 10), "ACME", amount("$40"))
    assert prices.quoted("ACME", MARCH).price == amount("35 EUR")
    assert prices.quoted("$", MARCH) is None


def test_conversion_and_value():
    prices = book("2024-01-10 EUR $1.25")
    assert prices.convert(amount("8 EUR"), "$", MARCH) == amount("$10")
    assert prices.convert(amount("8 GOLD"), "$", MARCH) is None
    held = Purse([amount("8 EUR"), amount("$1"), amount("3 GOLD")])
    assert prices.value(held, "$", MARCH) == Purse([amount("$11"), amount("3 GOLD")])


COSTS = """\
2024-01-10 buy
    assets:broker    10 ACME @ $4.00
    assets:bank
2024-02-10 change
    assets:euro      50 EUR @@ $60
    assets:bank
2024-02-10 swap
    assets:gold      4 GOLD
    assets:bank      $-100
P 2024-02-10 EUR $1.10
"""


def test_costs_can_be_taken_as_quotes():
    journal = read_text(COSTS)
    assert PriceBook.from_journal(journal).rate("ACME", "$", MARCH) is None
    prices = PriceBook.from_journal(journal, infer=True)
    assert prices.rate("ACME", "$", MARCH) == 4
    assert prices.rate("GOLD", "$", MARCH) == 25
    assert prices.rate("EUR", "$", MARCH) == Decimal("1.10")


def test_unit_costs():
    postings = [txn.postings[0] for txn in read_text(COSTS).transactions]
    assert [unit_cost(p) for p in postings] == [amount("$4.00"), amount("$1.2"), amount("$25")]
    assert unit_cost(read_text(COSTS).transactions[0].postings[1]) is None


TRADES = """\
2024-01-10 buy
    assets:broker    10 ACME @ $4
    assets:bank
2024-01-20 buy more
    assets:broker    10 ACME @ $6
    assets:bank
2024-02-10 sell
    assets:broker    -5 ACME @ $9
    assets:bank
2024-02-20 holiday money
    expenses:fun     7 EUR @ $1
    assets:bank
P 2024-01-31 ACME $5
P 2024-03-01 ACME $8
"""


def gains(text, on):
    journal = read_text(text)
    found = unrealised_gains(journal, PriceBook.from_journal(journal), "$", on)
    return [(g.account, g.commodity, g.quantity, g.basis, g.value, g.gain) for g in found]


def test_gains_use_the_average_cost():
    assert gains(TRADES, JANUARY) == [
        ("assets:broker", "ACME", 20, amount("$100"), amount("$100"), amount("$0"))
    ]
    assert gains(TRADES, MARCH) == [
        ("assets:broker", "ACME", 15, amount("$75"), amount("$120"), amount("$45"))
    ]


def test_without_a_cost_the_market_price_of_the_day_is_the_basis():
    text = "P 2024-01-01 ACME $3\nP 2024-03-01 ACME $4\n2024-01-05 gift\n  assets:x  2 ACME\n  income:gift\n"
    assert gains(text, MARCH) == [("assets:x", "ACME", 2, amount("$6"), amount("$8"), amount("$2"))]


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-05 gift\n  assets:x  2 ACME\n  income:gift\n",
        "P 2024-01-01 ACME $3\n2024-01-05 a\n  assets:x  2 ACME\n  b\n2024-01-06 b\n  assets:x  -2 ACME\n  b\n",
        "2024-01-05 cash\n  assets:x  $5\n  income:gift\n",
        "P 2024-01-01 ACME $3\n2024-05-05 later\n  assets:x  2 ACME\n  income:gift\n",
    ],
    ids=["no-rate", "nothing-left", "the-commodity-itself", "not-yet"],
)
def test_holdings_that_have_no_line(text):
    assert gains(text, MARCH) == []
