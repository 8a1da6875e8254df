from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from tallybook.accounts import AccountType
from tallybook.errors import BalanceError, ParseError
from tallybook.model import Cost, Status
from tallybook.money import parse_amount as amount
from tallybook.reader import read_file, read_text
from tallybook.writer import write_journal, write_transaction

FULL = """\
; a comment at the margin
commodity $1,000.00
commodity "ACME 2024"
account assets:bank  ; checking, type: cash
account wallet       ; type: cash
P 2024-01-02 "ACME 2024" $40.125
~ every 3 weeks from 2024-01-05 to 2024-06  wages
    assets:bank    $500
    income:wages

2024-01-05 * (17) Shop | milk  ; trip: rome, who: me
    ! expenses:food     $5.25  ; kind: snack
    ; and more of it
    assets:bank               = $100.00

2024-01-06 Broker
    assets:broker    2 "ACME 2024" @ $40.0001
    assets:bank
"""


def only(text):
    (txn,) = read_text(text).transactions
    return txn


def test_reads_the_head_of_a_transaction():
    txn = only("2024/1/5 ! (17) Shop | milk  ; trip: rome\n  a  $1\n  b\n")
    assert (txn.date, txn.status, txn.code) == (date(2024, 1, 5), Status.PENDING, "17")
    assert (txn.description, txn.payee) == ("Shop | milk", "Shop")
    assert (txn.comment, txn.tags) == ("trip: rome", {"trip": "rome"})


def test_all_but_the_date_may_be_left_out():
    txn = only("2024-01-05\n\ta  $1\n\tb\n")
    assert (txn.description, txn.status, txn.code, txn.tags) == ("", Status.UNMARKED, "", {})


def test_reads_postings_with_costs_and_assertions():
    txn = only(
        "2024-01-05 x\n"
        "  * assets:my broker\t10 ACME @ $4.20 = 30 ACME\n"
        "  assets:cash         -20 EUR @@ $22\n"
        "  assets:bank  = $5\n"
    )
    first, second, third = txn.postings
    assert (first.account, first.status) == ("assets:my broker", Status.CLEARED)
    assert (first.amount, first.cost) == (amount("10 ACME"), Cost(amount("$4.20")))
    assert first.assertion == amount("30 ACME")
    assert second.cost == Cost(amount("$22"), total=True)
    assert (third.amount, third.assertion) == (amount("$-20.00"), amount("$5"))


def test_comment_lines_belong_to_what_they_follow():
    txn = only(
        "2024-01-05 x\n"
        "  ; project: alpha\n"
        "  a  $1  ; first\n"
        "  ; see https://example.org, note: second, done:\n"
        "  b\n"
    )
    assert (txn.comment, txn.tags) == ("project: alpha", {"project": "alpha"})
    assert txn.postings[0].comment == "first\nsee https://example.org, note: second, done:"
    assert txn.postings[0].tags == {"note": "second", "done": ""}
    assert txn.postings[1].comment == ""


def test_knows_where_everything_stands():
    journal = read_text("\n; x\n2024-01-05 x\n  a  $1\n  b\n", source="books")
    (txn,) = journal.transactions
    assert (txn.source, txn.line, [p.line for p in txn.postings]) == ("books", 3, [4, 5])


def test_directives():
    journal = read_text(FULL)
    assert journal.commodities == {"$", "ACME 2024"}
    assert journal.styles.is_pinned("$") and not journal.styles.is_pinned("ACME 2024")
    assert journal.account_type("wallet") is AccountType.CASH
    assert journal.declarations["assets:bank"].comment == "checking, type: cash"
    (quote,) = journal.prices
    assert (quote.day, quote.commodity, quote.price) == (
        date(2024, 1, 2),
        "ACME 2024",
        amount("$40.125"),
    )


def test_periodic_rules():
    (rule,) = read_text(FULL).rules
    assert (rule.every, rule.description) == ("every 3 weeks", "wages")
    assert (rule.start, rule.end) == (date(2024, 1, 5), date(2024, 7, 1))
    assert rule.postings[1].amount == amount("$-500")
    (rule,) = read_text("~ monthly\n  a  $1\n  b\n").rules
    assert (rule.start, rule.end, rule.description) == (None, None, "")


def test_the_longest_alias_that_fits_is_replaced():
    journal = read_text(
        "alias b = assets:bank\nalias b:x = assets:box\n"
        "2024-01-05 x\n  b:savings  $1\n  b:x:y  $1\n  bb  $-2\n"
    )
    names = [p.account for p in journal.transactions[0].postings]
    assert names == ["assets:bank:savings", "assets:box:y", "bb"]


def test_the_year_directive_completes_short_dates():
    journal = read_text("year 2023\n02-14 x\n  a  $1\n  b\nP 03-01 EUR $1\n")
    assert journal.transactions[0].date == date(2023, 2, 14)
    assert journal.prices[0].day == date(2023, 3, 1)


def test_comment_blocks_are_skipped():
    journal = read_text(
        "comment\n2024-01-05 x\nnonsense\nend comment\n2024-01-06 y\n  a  $1\n  b\n"
    )
    assert [txn.description for txn in journal.transactions] == ["y"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("2024-01-05 x\n  a  $1\n  b  1.2.3\n", 3),
        ("\n2024-13-05 x\n  a  $1\n  b\n", 2),
        ("  a  $1\n", 1),
        ("\n\nfrobnicate everything\n", 3),
        ("account a  ; type: money\n", 1),
        ("P 2024-01-01 EUR\n", 1),
        ("alias a\n", 1),
        ("~ whenever\n  a  $1\n  b\n", 1),
        ("2024-01-05 x\n  a  @ $3\n  b\n", 2),
        ("include other.journal\n", 1),
    ],
    ids=[
        "amount",
        "date",
        "orphan",
        "directive",
        "account-type",
        "price",
        "alias",
        "interval",
        "cost-without-amount",
        "include-without-file",
    ],
)
def test_errors_name_their_place(text, line):
    with pytest.raises(ParseError) as caught:
        read_text(text, source="books")
    assert (caught.value.source, caught.value.line) == ("books", line)
    assert str(caught.value).startswith(f"books:{line}: ")


def test_balance_errors_name_their_place():
    with pytest.raises(BalanceError, match=r"^books:2: "):
        read_text("\n2024-01-05 x\n  a  $1\n  b  $1\n", source="books")


def test_includes_are_relative_to_the_file(tmp_path):
    (tmp_path / "years").mkdir()
    (tmp_path / "main.journal").write_text(
        "alias x = assets:x\ninclude years/*.journal\n", encoding="utf-8"
    )
    for year in (2024, 2023):
        (tmp_path / "years" / f"{year}.journal").write_text(
            f"year {year}\nalias y = assets:y\ninclude ../common.txt\n01-01 open\n  x  $1\n  y\n",
            encoding="utf-8",
        )
    (tmp_path / "common.txt").write_text("P 2024-01-01 EUR $1\n", encoding="utf-8")
    journal = read_file(tmp_path / "main.journal")
    assert [txn.date.year for txn in journal.transactions] == [2023, 2024]
    assert [p.account for p in journal.transactions[0].postings] == ["assets:x", "assets:y"]
    assert len(journal.prices) == 2


def test_what_an_included_file_sets_ends_with_it(tmp_path):
    (tmp_path / "other").write_text("year 2020\nalias z = assets:z\n", encoding="utf-8")
    (tmp_path / "main").write_text("include other\n2024-01-01 x\n  z  $1\n  a\n", encoding="utf-8")
    journal = read_file(tmp_path / "main")
    assert journal.transactions[0].postings[0].account == "z"
    (tmp_path / "main").write_text("include other\n01-01 x\n  z  $1\n  a\n", encoding="utf-8")
    with pytest.raises(ParseError):
        read_file(tmp_path / "main")


def test_a_file_may_not_include_itself_and_errors_name_the_inner_file(tmp_path):
    (tmp_path / "a").write_text("include b\n", encoding="utf-8")
    (tmp_path / "b").write_text("\ninclude a\n", encoding="utf-8")
    with pytest.raises(ParseError) as caught:
        read_file(tmp_path / "a")
    assert (caught.value.source, caught.value.line) == (str(tmp_path / "b"), 2)
    (tmp_path / "b").write_text("include missing-*\n", encoding="utf-8")
    with pytest.raises(ParseError, match="missing"):
        read_file(tmp_path / "a")


def test_a_transaction_is_written_with_its_amounts_aligned():
    journal = read_text(
        "2024-1-5 * (9) Shop ; k: v\n  food  $1,200.50 ; x\n  ! a:cash  -1100 $\n  c\n"
    )
    assert write_transaction(journal.transactions[0], journal.styles) == (
        "2024-01-05 * (9) Shop  ; k: v\n"
        "    food       $1,200.50  ; x\n"
        "    ! a:cash  -$1,100.00\n"
        "    c           -$100.50\n"
    )


def test_what_is_written_reads_back():
    journal = read_text(FULL)
    again = read_text(write_journal(journal))
    assert again.transactions == journal.transactions
    assert again.rules == journal.rules
    assert again.prices == journal.prices
    assert again.declarations == journal.declarations
    assert again.commodities == journal.commodities
    assert again.styles.is_pinned("$")
    assert write_journal(again) == write_journal(journal)


def test_digits_beyond_the_style_are_written_out():
    journal = read_text(FULL)
    broker = journal.transactions[1]
    assert broker.postings[1].amount.quantity == Decimal("-80.0002")
    text = write_transaction(broker, journal.styles)
    assert "@ $40.0001\n" in text and "-$80.0002\n" in text


@pytest.mark.parametrize(
    "description", ["* odd", "!", "(refund) odd"], ids=["star", "bang", "code"]
)
@pytest.mark.parametrize("status", list(Status), ids=["unmarked", "pending", "cleared"])
def test_odd_descriptions_read_back(description, status):
    txn = replace(only("2024-01-05\n  a  $1\n  b\n"), description=description, status=status)
    assert only(write_transaction(txn)) == txn
