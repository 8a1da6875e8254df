from datetime import date

import pytest

from tallybook.balances import balance_on, build_tree, closing_entry, register, totals, tree_rows
from tallybook.journal import Journal
from tallybook.model import Posting, Transaction
from tallybook.money import parse_amount as amount
from tallybook.periods import Span, parse_span
from tallybook.purse import Purse
from tallybook.query import parse_query


def purse(*texts):
    return Purse(amount(text) for text in texts)


@pytest.fixture
def journal():
    books = Journal()
    for day, description, *postings in [
        ("2024-01-01", "open", ("assets:bank:main", "$100"), ("equity:open", "-$100")),
        ("2024-01-10", "shop", ("expenses:food", "$30"), ("assets:bank:main", "-$30")),
        ("2024-01-20", "wine", ("expenses:food:wine", "10 EUR"), ("assets:cash", "-10 EUR")),
        ("2024-02-01", "pay", ("assets:bank:main", "$50"), ("income:job", "-$50")),
        ("2024-02-05", "back", ("assets:bank:main", "$30"), ("expenses:food", "-$30")),
    ]:
        books.add(
            Transaction(
                date.fromisoformat(day),
                description,
                tuple(Posting(account, amount(text)) for account, text in postings),
            )
        )
    return books


def test_totals_are_sorted_and_keep_zeros(journal):
    held = totals(journal.entries())
    assert list(held) == sorted(held) and len(held) == 6
    assert held["assets:bank:main"] == purse("$150")
    assert held["expenses:food"] == Purse()


def test_totals_can_be_cut_to_a_depth(journal):
    held = totals(journal.entries(), depth=1)
    assert held["assets"] == purse("$150", "-10 EUR")
    assert held["expenses"] == purse("10 EUR")
    assert totals(parse_query("food").select(journal), depth=2) == {
        "expenses:food": purse("10 EUR")
    }


def test_the_tree_sums_what_is_below(journal):
    root = build_tree(totals(journal.entries()))
    assert [child.name for child in root.children] == ["assets", "equity", "expenses", "income"]
    nodes = {node.name: node for node in root.walk()}
    assert root.total == Purse()
    assert (nodes["assets"].own, nodes["assets"].total) == (Purse(), purse("$150", "-10 EUR"))
    assert nodes["expenses:food"].total == purse("10 EUR")


def test_parents_come_before_children_and_children_are_sorted():
    root = build_tree(
        {"a:c": purse("$1"), "a": purse("$1"), "a:b:x": purse("$1"), "a b": purse("$1")}
    )
    assert [node.name for node in root.walk()] == ["", "a", "a:b", "a:b:x", "a:c", "a b"]


def rows(root, **how):
    return [(row.indent, row.label, row.total.format()) for row in tree_rows(root, **how)]


def test_tree_rows_join_lonely_accounts(journal):
    root = build_tree(totals(journal.entries()))
    assert rows(root) == [
        (0, "assets", "150 $, -10 EUR"),
        (1, "bank:main", "150 $"),
        (1, "cash", "-10 EUR"),
        (0, "equity:open", "-100 $"),
        (0, "expenses:food:wine", "10 EUR"),
        (0, "income:job", "-50 $"),
    ]


def test_tree_rows_with_own_postings_are_not_joined():
    root = build_tree({"a": purse("$1"), "a:b": purse("$2"), "a:b:c": purse("$4")})
    assert rows(root) == [(0, "a", "7 $"), (1, "b", "6 $"), (2, "c", "4 $")]


def test_tree_rows_stop_at_the_depth():
    root = build_tree({"a:b:c": purse("$1"), "a:b:d": purse("$2"), "a:e": purse("$4")})
    assert rows(root, depth=2) == [(0, "a", "7 $"), (1, "b", "3 $"), (1, "e", "4 $")]
    assert rows(root, depth=1) == [(0, "a", "7 $")]


def test_tree_rows_hide_what_is_empty_unless_asked():
    balances = {
        "a:x": Purse(),
        "a:y": purse("$1"),
        "b": Purse(),
        "c:p": purse("$1"),
        "c:q": purse("-$1"),
    }
    root = build_tree(balances)
    assert rows(root) == [(0, "a:y", "1 $"), (0, "c", "0"), (1, "p", "1 $"), (1, "q", "-1 $")]
    assert [name for _, name, _ in rows(root, empty=True)] == ["a", "x", "y", "b", "c", "p", "q"]


def test_the_register_runs_a_sum(journal):
    found = register(journal, parse_query("bank"))
    assert [row.txn.description for row in found] == ["open", "shop", "pay", "back"]
    assert [row.running.format() for row in found] == ["100 $", "70 $", "120 $", "150 $"]


def test_the_register_may_start_from_what_was_before(journal):
    february = parse_span("2024-02")
    fresh = register(journal, parse_query("bank"), february)
    carried = register(journal, parse_query("bank"), february, historical=True)
    assert [row.running.format() for row in fresh] == ["50 $", "80 $"]
    assert [row.running.format() for row in carried] == ["120 $", "150 $"]
    assert len(register(journal)) == 10


def test_the_balance_on_a_day_includes_the_day_but_no_other_account(journal):
    assert balance_on(journal, "assets:bank:main", date(2024, 2, 1)) == purse("$120")
    assert balance_on(journal, "assets:bank:main", date(2024, 1, 31)) == purse("$70")
    assert balance_on(journal, "assets:bank", date(2024, 2, 1)) == Purse()


def test_closing_moves_the_result_into_equity(journal):
    entry = closing_entry(journal, parse_span("2024-01"))
    assert (entry.date, entry.description) == (date(2024, 1, 31), "close books")
    assert "closing" in entry.tags
    assert [(p.account, p.amount) for p in entry.postings] == [
        ("expenses:food", amount("-$30")),
        ("expenses:food:wine", amount("-10 EUR")),
        ("equity:retained earnings", amount("$30")),
        ("equity:retained earnings", amount("10 EUR")),
    ]
    journal.add(entry)
    assert totals(parse_query("type:expense").select(journal, parse_span("2024-01"))) == {
        "expenses:food": Purse(),
        "expenses:food:wine": Purse(),
    }


def test_closing_can_name_its_account_and_may_have_nothing_to_do(journal):
    entry = closing_entry(journal, parse_span("2024"), into="equity:result")
    assert entry.postings[-1].account == "equity:result"
    assert closing_entry(journal, parse_span("2023")) is None
    with pytest.raises(ValueError):
        closing_entry(journal, Span(date(2024, 1, 1)))
