from datetime import date

import pytest

from tallybook.errors import TallyError
from tallybook.money import parse_amount as amount
from tallybook.periods import Every, Span, parse_span, split
from tallybook.purse import Purse
from tallybook.query import parse_query
from tallybook.reader import read_text
from tallybook.reports import (
    STATEMENTS,
    Options,
    balance_report,
    balance_sheet,
    cash_flow,
    income_statement,
    render,
)
from tallybook.tables import Table, render_table, shorten

BOOKS = """\
2024-01-01 open
    assets:bank:main       $100.00
    equity:open
2024-01-10 shop
    expenses:food           $30.00
    expenses:food:wine      $10.00
    liabilities:card
2024-02-01 pay
    assets:bank:main        $50.00
    income:job
2024-02-10 travel
    expenses:travel          20 EUR
    assets:cash             -20 EUR
2024-02-20 shares
    assets:broker             2 ACME @ $20.00
    assets:bank:main
P 2024-01-15 EUR $1.00
P 2024-02-28 EUR $1.50
P 2024-02-28 ACME $25
"""

QUARTER = split(parse_span("2024-q1"), Every("month"))


def purse(*texts):
    return Purse(amount(text) for text in texts)


@pytest.fixture
def journal():
    return read_text(BOOKS)


def table(section):
    return {row.account: [cell.format() for cell in row.cells] for row in section.rows}


def test_income_statement(journal):
    report = income_statement(journal, Options(QUARTER))
    income, expenses = report.sections
    assert (income.title, expenses.title) == ("Income", "Expenses")
    assert table(income) == {"income:job": ["0", "50.00 $", "0"]}
    assert list(table(expenses)) == ["expenses:food", "expenses:food:wine", "expenses:travel"]
    assert expenses.totals.cells == (purse("$40"), purse("20 EUR"), Purse())
    assert expenses.totals.total == purse("$40", "20 EUR")
    assert report.net.cells == (purse("-$40"), purse("$50", "-20 EUR"), Purse())
    assert report.summed


def test_balance_sheet_shows_what_is_held_at_the_end_of_each_period(journal):
    report = balance_sheet(journal, Options(QUARTER))
    assets, debts = report.sections
    assert table(assets) == {
        "assets:bank:main": ["100.00 $", "110.00 $", "110.00 $"],
        "assets:broker": ["0", "2 ACME", "2 ACME"],
        "assets:cash": ["0", "-20 EUR", "-20 EUR"],
    }
    assert table(debts) == {"liabilities:card": ["40.00 $", "40.00 $", "40.00 $"]}
    assert report.net.account == "Net worth"
    assert report.net.cells[0] == purse("$60")
    assert not report.summed


def test_valuation_uses_the_rates_at_the_end_of_each_period(journal):
    report = balance_sheet(journal, Options(QUARTER, value_in="$"))
    rows = {row.account: row.cells for row in report.sections[0].rows}
    assert rows["assets:broker"] == (Purse(), purse("$50"), purse("$50"))
    assert rows["assets:cash"] == (Purse(), purse("-$30"), purse("-$30"))
    assert report.net.cells == (purse("$60"), purse("$90"), purse("$90"))


def test_what_has_no_rate_stays_as_it_is(journal):
    report = balance_sheet(journal, Options(QUARTER, value_in="GOLD"))
    assert report.net.cells[2] == purse("$70", "2 ACME", "-20 EUR")


def test_a_period_without_an_end_cannot_be_valued(journal):
    with pytest.raises(TallyError):
        balance_sheet(journal, Options([Span(date(2024, 1, 1))], value_in="$"))


def test_cash_flow_is_the_change_of_cash_accounts(journal):
    report = cash_flow(journal, Options(QUARTER))
    (cash,) = report.sections
    assert table(cash) == {
        "assets:bank:main": ["100.00 $", "10.00 $", "0"],
        "assets:cash": ["0", "-20 EUR", "0"],
    }
    assert report.net is None


def test_balance_report_of_changes_and_of_holdings(journal):
    options = Options(QUARTER, query=parse_query("assets:bank"))
    changes = balance_report(journal, options)
    holdings = balance_report(journal, options, historical=True)
    assert table(changes.sections[0]) == {"assets:bank:main": ["100.00 $", "10.00 $", "0"]}
    assert table(holdings.sections[0]) == {"assets:bank:main": ["100.00 $", "110.00 $", "110.00 $"]}
    assert (changes.summed, holdings.summed) == (True, False)


def test_depth_gathers_accounts(journal):
    report = income_statement(journal, Options([parse_span("2024")], depth=1))
    assert table(report.sections[1]) == {"expenses": ["40.00 $, 20 EUR"]}


def test_rows_that_are_empty_are_left_out_unless_asked_for():
    journal = read_text(
        "2024-01-01 x\n  expenses:a  $1\n  expenses:b  $1\n  c\n2024-01-02 y\n  expenses:a  $-1\n  c\n"
    )
    year = [parse_span("2024")]
    assert list(table(income_statement(journal, Options(year)).sections[1])) == ["expenses:b"]
    shown = income_statement(journal, Options(year, empty=True)).sections[1]
    assert list(table(shown)) == ["expenses:a", "expenses:b"]


def test_statements_by_name():
    assert sorted(STATEMENTS) == ["balance", "cash", "income", "sheet"]
    assert STATEMENTS["income"] is income_statement


def test_rendered_statement(journal):
    spans = split(parse_span("2024-01..2024-02"), Every("month"))
    report = income_statement(journal, Options(spans, depth=1))
    assert render(report, journal.styles) == (
        "Income statement\n"
        "\n"
        "            2024-01  2024-02    Total\n"
        "----------  -------  -------  -------\n"
        "Income\n"
        "income            0   $50.00   $50.00\n"
        "----------  -------  -------  -------\n"
        "Total             0   $50.00   $50.00\n"
        "----------  -------  -------  -------\n"
        "Expenses\n"
        "expenses     $40.00   20 EUR   $40.00\n"
        "                               20 EUR\n"
        "----------  -------  -------  -------\n"
        "Total        $40.00   20 EUR   $40.00\n"
        "                               20 EUR\n"
        "----------  -------  -------  -------\n"
        "Net income  -$40.00   $50.00   $10.00\n"
        "                     -20 EUR  -20 EUR\n"
    )


def test_no_total_column_where_a_total_means_nothing(journal):
    one = render(income_statement(journal, Options([parse_span("2024")])))
    held = render(balance_sheet(journal, Options(QUARTER)))
    assert "2024" in one.splitlines()[2] and "Total" not in one.splitlines()[2]
    assert held.splitlines()[2].split() == ["2024-01", "2024-02", "2024-03"]


def test_tables():
    grid = Table(["name", "n"])
    grid.add("a", ["1", "200"])
    grid.rule()
    grid.add("sum", "201")
    assert render_table(grid) == (
        "name    n\n----  ---\na       1\n      200\n----  ---\nsum   201\n"
    )
    both_left = Table(["x", "y"], left=frozenset({0, 1}))
    both_left.add("long", [])
    both_left.add("z", "y y")
    assert render_table(both_left, gap="|") == "x   |y\n----|---\nlong|\nz   |y y\n"


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcd", 1, "…")],
    ids=["fits", "cut", "one"],
)
def test_shortening(text, width, short):
    assert shorten(text, width) == short
