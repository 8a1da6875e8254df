import io
from datetime import date
from decimal import Decimal

import pytest

from tallybook.budget import (
    BudgetCell,
    budget_report,
    forecast,
    goals,
    render_budget,
    rule_days,
    with_forecast,
)
from tallybook.cli import main
from tallybook.money import parse_amount as amount
from tallybook.periods import Every, Span, parse_span, split
from tallybook.purse import Purse
from tallybook.query import parse_query
from tallybook.reader import read_text

BOOKS = """\
~ monthly from 2024-01-31 to 2024-06  rent
    expenses:rent        $900.00
    assets:bank

~ every 2 weeks from 2024-01-05  groceries
    expenses:food        $100.00
    assets:bank

~ yearly  wine
    expenses:food:wine    12 EUR
    assets:cash

2024-01-10 shop
    expenses:food:market  $150.00
    assets:bank
2024-01-12 wine
    expenses:food:wine:red   6 EUR
    assets:cash
2024-01-31 rent
    expenses:rent        $900.00
    assets:bank
2024-02-03 fun
    expenses:fun          $20.00
    assets:bank
2024-02-05 pay
    assets:bank         $2000.00
    income:job
"""

MONTHS = split(parse_span("2024-01..2024-02"), Every("month"))


@pytest.fixture
def journal():
    return read_text(BOOKS)


def purse(*texts):
    return Purse(amount(text) for text in texts)


def test_the_days_of_a_rule(journal):
    rent, food, wine = journal.rules
    assert list(rule_days(rent, parse_span("2024"))) == [
        date(2024, 1, 31),
        date(2024, 2, 29),
        date(2024, 3, 31),
        date(2024, 4, 30),
        date(2024, 5, 31),
        date(2024, 6, 30),
    ]
    assert [day.day for day in rule_days(food, parse_span("2024-02"))] == [2, 16]
    assert list(rule_days(wine, parse_span("2024-03..2025-02"))) == [date(2025, 1, 1)]


def test_rules_need_a_span_with_both_ends(journal):
    for span in (Span(date(2024, 1, 1)), Span(None, date(2024, 1, 1))):
        with pytest.raises(ValueError):
            list(rule_days(journal.rules[0], span))


def test_goals_add_up_what_the_rules_plan(journal):
    planned = goals(journal, parse_span("2024-q1"))
    assert list(planned) == sorted(planned)
    assert planned["expenses:food"] == purse("$700")
    assert planned["expenses:rent"] == purse("$2700")
    assert planned["expenses:food:wine"] == purse("12 EUR")
    assert planned["assets:bank"] == purse("-$3400")
    assert goals(journal, parse_span("2023")) == {
        "assets:cash": purse("-12 EUR"),
        "expenses:food:wine": purse("12 EUR"),
    }


def cells(report):
    return {row.account: [(c.actual, c.goal) for c in row.cells] for row in report.rows}


def test_postings_count_for_the_deepest_account_with_a_goal(journal):
    report = budget_report(journal, MONTHS)
    assert cells(report) == {
        "expenses:food": [(purse("$150"), purse("$200")), (Purse(), purse("$200"))],
        "expenses:food:wine": [(purse("6 EUR"), purse("12 EUR")), (Purse(), Purse())],
        "expenses:rent": [(purse("$900"), purse("$900")), (Purse(), purse("$900"))],
        "(unbudgeted)": [(Purse(), Purse()), (purse("$20"), Purse())],
    }
    assert list(cells(report))[-1] == "(unbudgeted)"


def test_totals_of_a_budget(journal):
    january, february = budget_report(journal, MONTHS).totals.cells
    assert january == BudgetCell(purse("$1050", "6 EUR"), purse("$1100", "12 EUR"))
    assert february.left == purse("$1080")


def test_income_counts_only_with_a_goal(journal):
    assert "income:job" not in cells(budget_report(journal, MONTHS))
    journal.rules.extend(read_text("~ monthly\n  income  $-1800\n  assets:bank\n").rules)
    report = budget_report(journal, MONTHS)
    assert cells(report)["income"] == [
        (Purse(), purse("-$1800")),
        (purse("-$2000"), purse("-$1800")),
    ]


def test_depth_and_query_narrow_a_budget(journal):
    report = budget_report(journal, MONTHS[:1], parse_query("not wine"), depth=2)
    assert cells(report) == {
        "expenses:food": [(purse("$150"), purse("$200", "12 EUR"))],
        "expenses:rent": [(purse("$900"), purse("$900"))],
    }


@pytest.mark.parametrize(
    ("actual", "goal", "percent"),
    [
        (["$50"], ["$200"], 25),
        ([], ["$200"], 0),
        (["$1"], ["$3"], 33),
        (["$1"], ["$200"], 0),
        (["$3"], ["$200"], 2),
        (["-$90"], ["-$60"], 150),
        (["5 EUR"], ["$200"], None),
        (["$5", "1 EUR"], ["$200"], None),
        (["$5"], [], None),
    ],
    ids="quarter none third half-down half-up income other mixed no-goal".split(),
)
def test_the_share_of_a_goal(actual, goal, percent):
    assert BudgetCell(purse(*actual), purse(*goal)).percent == percent


def test_forecast_transactions(journal):
    found = forecast(journal, parse_span("2024-02-16..2024-03-01"))
    assert [(t.date.isoformat(), t.description) for t in found] == [
        ("2024-02-16", "groceries"),
        ("2024-02-29", "rent"),
        ("2024-03-01", "groceries"),
    ]
    assert all("forecast" in txn.tags for txn in found)
    assert found[0].postings[1].amount.quantity == Decimal("-100.00")


def test_a_rule_without_a_description_is_named_by_its_interval():
    journal = read_text("~ monthly from 2024-01\n  a  $1\n  b\n")
    (txn,) = forecast(journal, parse_span("2024-05"))
    assert (txn.description, txn.date) == ("monthly", date(2024, 5, 1))


def test_the_forecast_begins_after_the_last_entry(journal):
    future = with_forecast(journal, date(2024, 3, 1))
    assert len(journal.transactions) == 5
    announced = future.transactions[5:]
    assert [txn.date.isoformat() for txn in announced] == ["2024-02-16", "2024-02-29", "2024-03-01"]
    assert with_forecast(journal, date(2024, 1, 1)).transactions == journal.transactions


def test_without_entries_the_forecast_begins_with_the_rules():
    journal = read_text("~ monthly from 2024-01-15\n  a  $1\n  b\n")
    days = [txn.date for txn in with_forecast(journal, date(2024, 2, 20)).transactions]
    assert days == [date(2024, 1, 15), date(2024, 2, 15)]


def test_a_budget_as_text(journal):
    report = budget_report(journal, MONTHS[1:])
    assert render_budget(report, journal.styles) == (
        "               2024-02      goal  used\n"
        "-------------  -------  --------  ----\n"
        "expenses:food        0   $200.00    0%\n"
        "expenses:rent        0   $900.00    0%\n"
        "(unbudgeted)    $20.00\n"
        "-------------  -------  --------  ----\n"
        "Total           $20.00  $1100.00    2%\n"
    )


def call(tmp_path, *argv, text=BOOKS):
    path = tmp_path / "books.journal"
    path.write_text(text, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(["-f", str(path), "--today", "2024-02-20", *argv], out, err)
    return code, out.getvalue(), err.getvalue()


def test_the_budget_command(tmp_path):
    code, out, _ = call(tmp_path, "budget", "-p", "2024-01..2024-02", "-i", "monthly")
    assert code == 0
    assert out.splitlines()[0].split() == ["2024-01", "goal", "used", "2024-02", "goal", "used"]
    code, _, err = call(tmp_path, "budget", text="2024-01-01 x\n  a  $1\n  b\n")
    assert code == 1 and "periodic rules" in err


def test_the_forecast_command(tmp_path):
    code, out, _ = call(tmp_path, "forecast", "--until", "2024-02-16")
    assert code == 0
    assert out.splitlines()[0] == "2024-02-16 groceries  ; forecast:"
    journal = read_text(out)
    assert len(journal.transactions) == 1
    code, out, _ = call(tmp_path, "forecast", "--until", "2024-02-29", "--account", "assets:bank")
    assert (code, out) == (0, "assets:bank: -$70.00\n")
