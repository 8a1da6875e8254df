from datetime import date
from decimal import Decimal

import pytest

from tallybook.csvrules import parse_rules
from tallybook.errors import ParseError
from tallybook.importer import import_csv, merge, parse_number, usual_account
from tallybook.journal import Journal
from tallybook.model import Status
from tallybook.money import parse_amount as amount
from tallybook.reader import read_text
from tallybook.writer import write_journal

RULES = """\
# the bank's export
skip 1
separator semicolon
fields date, description, , amount, balance
date-format %d.%m.%Y
decimal-mark ,
currency EUR
account assets:bank
unknown-account expenses:unsorted
status *

if grocer|market
    account expenses:food
if market
    description Corner Market | food
    comment kind: weekly
if amount ~ ^0,00
    skip
"""

CSV = """\
Datum;Text;Info;Betrag;Saldo
05.01.2024;GROCER 17;x;-12,50;87,50
06.01.2024;Farmers Market;"a;b";-1.020,00;
;nothing here;;1;
07.01.2024;zero;;0,00;
07.01.2024;Employer;;2.000,00;
"""


def imported(csv=CSV, rules=RULES, **more):
    return import_csv(csv, parse_rules(rules), **more)


def test_records_become_transactions():
    first, second, third = imported()
    assert (first.date, first.description, first.status) == (
        date(2024, 1, 5),
        "GROCER 17",
        Status.CLEARED,
    )
    assert [(p.account, p.amount) for p in first.postings] == [
        ("assets:bank", amount("-12.50 EUR")),
        ("expenses:food", amount("12.50 EUR")),
    ]
    assert first.postings[0].assertion == amount("87.50 EUR")
    assert second.postings[0].amount == amount("-1020.00 EUR")
    assert second.postings[0].assertion is None
    assert (third.payee, third.postings[1].account) == ("Employer", "expenses:unsorted")


def test_conditions_apply_in_order():
    second = imported()[1]
    assert (second.payee, second.note) == ("Corner Market", "food")
    assert second.postings[1].account == "expenses:food"
    assert second.tags["kind"] == "weekly"


def test_every_transaction_has_its_own_stable_id():
    ids = [txn.tags["import-id"] for txn in imported()]
    assert len(set(ids)) == 3
    assert ids == [txn.tags["import-id"] for txn in imported()]


def test_equal_records_are_different_transactions():
    twice = CSV + "05.01.2024;GROCER 17;x;-12,50;\n"
    ids = [txn.tags["import-id"] for txn in imported(twice)]
    assert len(ids) == 4 and len(set(ids)) == 4
    assert set(ids) >= {txn.tags["import-id"] for txn in imported()}


def test_merging_adds_each_transaction_once():
    journal = Journal()
    assert len(merge(journal, imported())) == 3
    longer = CSV + "08.01.2024;late;;-1,00;\n"
    assert [txn.description for txn in merge(journal, imported(longer))] == ["late"]
    assert merge(journal, imported(longer)) == []
    assert len(journal.transactions) == 4


def test_what_was_imported_survives_writing_and_reading():
    journal = Journal()
    merge(journal, imported())
    again = read_text(write_journal(journal))
    assert again.transactions == journal.transactions
    assert merge(again, imported()) == []


def test_history_suggests_the_other_account():
    history = read_text(
        "2024-01-01 employer\n  assets:bank  1 EUR\n  income:old\n"
        "2024-01-02 Employer | pay\n  assets:bank  1 EUR\n  income:job\n"
        "2024-01-03 Employer\n  assets:bank  2 EUR\n  income:job  -1 EUR\n  income:bonus  -1 EUR\n"
        "2024-01-04 Employer\n  assets:other  1 EUR\n  income:gift\n"
    )
    assert usual_account(history, "EMPLOYER", "assets:bank") == "income:job"
    assert usual_account(history, "nobody", "assets:bank") is None
    accounts = [txn.postings[1].account for txn in imported(history=history)]
    assert accounts == ["expenses:food", "expenses:food", "income:job"]


def test_separate_columns_for_money_in_and_out_and_newest_first():
    rules = (
        "fields date,description,amount-out,amount-in,currency,code,comment\n"
        "account assets:bank\ncurrency $\nnewest-first\n"
    )
    csv = "2024-01-03,c,,7.00,EUR,,\n2024-01-02,b2,$3.00,,,77,ref; 9\n2024-01-02,b1,1,,,,\n"
    first, second, third = imported(csv, rules)
    assert [t.description for t in (first, second, third)] == ["b1", "b2", "c"]
    assert second.postings[0].amount == amount("-$3.00")
    assert (second.code, second.comment.split(", import-id")[0]) == ("77", "ref, 9")
    assert third.postings[0].amount == amount("7.00 EUR")
    assert third.postings[1].account == "expenses:unknown"


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("1,234.50", ".", "1234.50"),
        ("1.234,50", ",", "1234.50"),
        ("$ -5", ".", "-5"),
        ("(7.25)", ".", "-7.25"),
        ("7.25-", ".", "-7.25"),
        ("+3 EUR", ".", "3"),
        ("1 000,5", ",", "1000.5"),
    ],
    ids=["grouped", "decimal-comma", "symbol", "parentheses", "sign-after", "plus", "blanks"],
)
def test_numbers_as_banks_write_them(text, mark, number):
    assert parse_number(text, mark) == Decimal(number)


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "--5"], ids=["empty", "word", "points", "signs"]
)
def test_what_is_no_number(text):
    with pytest.raises(ParseError):
        parse_number(text)


@pytest.mark.parametrize(
    ("line", "csv"),
    [
        (2, "05.01.2024;a;;1,00;\n2024-01-05;b;;1,00;\n"),
        (1, "05.01.2024;a;;much;\n"),
        (3, '05.01.2024;a;"two\nlines";1,00;\n05.01.2024;a;;;\n'),
    ],
    ids=["date", "amount", "no-amount"],
)
def test_bad_records_are_named(line, csv):
    rules = parse_rules(RULES.replace("skip 1\n", ""))
    with pytest.raises(ParseError) as caught:
        import_csv(csv, rules, source="bank.csv")
    assert (caught.value.source, caught.value.line) == ("bank.csv", line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("account a\nfields date,amount\ncolour red\n", 3),
        ("account a\nfields date,amuont\n", 2),
        ("    account a\n", 1),
        ("account a\nfields date,amount\nif [\n    account b\n", 3),
        ("account a\nfields date,amount\nif x\n    paint it\n", 4),
        ("skip one\n", 1),
        ("decimal-mark ;\n", 1),
        ("account\n", 1),
        ("account a::b\n", 1),
        ("fields date,amount\n", None),
        ("account a\nfields date,description\n", None),
        ("account a\nfields amount\n", None),
    ],
    ids=(
        "setting field orphan regex action number mark no-value account-name no-account no-amount "
        "no-date"
    ).split(),
)
def test_bad_rules_are_named(text, line):
    with pytest.raises(ParseError) as caught:
        parse_rules(text, source="bank.rules")
    assert (caught.value.source, caught.value.line) == ("bank.rules", line)
