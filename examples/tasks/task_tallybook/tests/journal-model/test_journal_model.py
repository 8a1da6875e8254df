from datetime import date
from decimal import Decimal

import pytest

from tallybook import accounts
from tallybook.accounts import AccountType
from tallybook.errors import BalanceError, ParseError
from tallybook.journal import Journal
from tallybook.model import AccountDeclaration, Cost, Posting, Status, Transaction
from tallybook.money import parse_amount as amount


def posting(account, text=None, cost=None, **more):
    return Posting(account, amount(text) if text else None, cost, **more)


def entry(*postings, day="2024-01-01", description="something", **more):
    return Transaction(date.fromisoformat(day), description, tuple(postings), **more)


def amounts(txn):
    return [(p.account, str(p.amount.quantity), p.amount.commodity) for p in txn.postings]


@pytest.mark.parametrize(
    "name",
    ["", ":", "assets:", "assets::bank", "assets: bank", "a  b", "a;b"],
    ids=[
        "empty",
        "only-separator",
        "empty-end",
        "empty-middle",
        "blank-after-separator",
        "two-blanks",
        "semicolon",
    ],
)
def test_refuses_impossible_account_names(name):
    with pytest.raises(ParseError):
        accounts.check_account(name)


def test_account_names_are_paths():
    name = accounts.check_account("assets:my bank:checking")
    assert accounts.lineage(name) == ["assets", "assets:my bank", "assets:my bank:checking"]
    assert (accounts.depth(name), accounts.depth("")) == (3, 0)
    assert (accounts.parent(name), accounts.parent("assets")) == ("assets:my bank", "")
    assert accounts.leaf(name) == "checking"
    assert [accounts.clip(name, n) for n in (None, 2, 0)] == [name, "assets:my bank", ""]
    assert accounts.is_under(name, "assets") and accounts.is_under(name, name)
    assert not accounts.is_under("assets:bank2", "assets:bank")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Assets:broker", AccountType.ASSET),
        ("assets:Bank:x", AccountType.CASH),
        ("liabilities:card", AccountType.LIABILITY),
        ("Revenues", AccountType.INCOME),
        ("expenses:bank:fees", AccountType.EXPENSE),
        ("misc", None),
    ],
    ids=["asset", "cash", "liability", "income", "expense", "unknown"],
)
def test_types_guessed_from_names(name, kind):
    assert accounts.guess_type(name) is kind


def test_cash_is_an_asset_but_not_the_other_way_round():
    assert AccountType.CASH.is_a(AccountType.ASSET)
    assert not AccountType.ASSET.is_a(AccountType.CASH)


def test_one_missing_amount_is_inferred():
    kept = Journal().add(entry(posting("food", "$12.50"), posting("tip", "$2"), posting("cash")))
    assert amounts(kept)[2] == ("cash", "-14.50", "$")
    assert [p.inferred for p in kept.postings] == [False, False, True]


def test_a_missing_amount_becomes_one_posting_per_commodity():
    kept = Journal().add(
        entry(posting("a", "$5"), posting("cash"), posting("b", "3 EUR"), posting("c", "$1"))
    )
    assert amounts(kept) == [
        ("a", "5", "$"),
        ("cash", "-6", "$"),
        ("cash", "-3", "EUR"),
        ("b", "3", "EUR"),
        ("c", "1", "$"),
    ]


def test_two_missing_amounts_are_too_many():
    with pytest.raises(BalanceError, match="something"):
        Journal().add(entry(posting("a", "$5"), posting("b"), posting("c")))


def test_a_transaction_needs_two_postings():
    with pytest.raises(BalanceError):
        Journal().add(entry(posting("a", "$0")))


def test_what_does_not_balance_is_refused_and_not_kept():
    journal = Journal()
    with pytest.raises(BalanceError):
        journal.add(entry(posting("a", "$5.00"), posting("b", "$-4.99")))
    assert journal.transactions == []


def test_weights_are_costs():
    bought = posting("broker", "10 ACME", Cost(amount("$4.20")))
    sold = posting("broker", "-3 ACME", Cost(amount("$13"), total=True))
    assert bought.weight == amount("$42.00")
    assert sold.weight == amount("$-13")
    assert posting("cash").weight is None
    kept = Journal().add(entry(bought, posting("cash")))
    assert amounts(kept)[1] == ("cash", "-42.00", "$")


def test_half_a_unit_of_the_last_digit_is_tolerated():
    rate = Cost(amount("$1.333"))
    Journal().add(entry(posting("a", "3 EUR", rate), posting("b", "$-4.00")))
    with pytest.raises(BalanceError):
        Journal().add(entry(posting("a", "3 EUR", rate), posting("b", "$-4.000")))


def test_an_exchange_without_a_cost_gets_one():
    kept = Journal().add(entry(posting("a", "100 EUR"), posting("b", "$-108"), posting("c", "$-2")))
    assert kept.postings[0].cost == Cost(amount("$110"), total=True)
    assert kept.postings[1].cost is None


def test_no_cost_is_invented_when_the_signs_agree_or_the_first_commodity_is_split():
    with pytest.raises(BalanceError):
        Journal().add(entry(posting("a", "100 EUR"), posting("b", "$108")))
    with pytest.raises(BalanceError):
        Journal().add(entry(posting("a", "60 EUR"), posting("b", "40 EUR"), posting("c", "$-108")))


def test_payee_note_tags_and_status():
    txn = entry(
        posting("a", "$1", tags={"trip": "rome"}, status=Status.PENDING),
        posting("b"),
        description="Shop | milk | eggs",
        status=Status.CLEARED,
        tags={"trip": "oslo", "who": "me"},
    )
    assert (txn.payee, txn.note) == ("Shop", "milk | eggs")
    assert txn.all_tags(txn.postings[0]) == {"trip": "rome", "who": "me"}
    assert txn.status_of(txn.postings[0]) is Status.PENDING
    assert txn.status_of(txn.postings[1]) is Status.CLEARED


def test_where_an_entry_stands_takes_no_part_in_equality():
    assert entry(posting("a"), line=3, source="x") == entry(posting("a", line=9), source="y")


def test_the_journal_is_in_date_order_and_stable():
    journal = Journal()
    for day, name in [("2024-02-01", "b1"), ("2024-01-01", "a"), ("2024-02-01", "b2")]:
        journal.add(entry(posting("x", "$1"), posting("y"), day=day, description=name))
    assert [txn.description for txn in journal.in_date_order()] == ["a", "b1", "b2"]
    assert [p.account for _, p in journal.entries()] == ["x", "y"] * 3
    assert (journal.first_day(), journal.last_day()) == (date(2024, 1, 1), date(2024, 2, 1))
    assert Journal().first_day() is None


def test_the_journal_knows_accounts_and_their_types():
    journal = Journal()
    journal.declare(AccountDeclaration("wallet", AccountType.CASH))
    journal.declare(AccountDeclaration("assets:house"))
    journal.add(entry(posting("wallet:left pocket", "$1"), posting("income:gift")))
    assert journal.account_names() == [
        "assets:house",
        "income:gift",
        "wallet",
        "wallet:left pocket",
    ]
    assert journal.account_type("wallet:left pocket") is AccountType.CASH
    assert journal.account_type("assets:house") is AccountType.ASSET
    assert journal.account_type("somewhere") is None


def test_the_journal_learns_styles_from_written_amounts_only():
    journal = Journal()
    journal.add(entry(posting("a", "3 EUR", Cost(amount("$1.2345"))), posting("b")))
    assert journal.styles.style_for("EUR") is not None
    assert journal.styles.style_for("$") is None
    journal.add(entry(posting("a", "$1.00"), posting("b")))
    assert journal.styles.format(amount("$5").rounded(0)) == "$5.00"
    assert Decimal(5) == amount("$5").quantity
