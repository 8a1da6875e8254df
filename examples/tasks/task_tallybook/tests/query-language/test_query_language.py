from datetime import date

import pytest

from tallybook.accounts import AccountType
from tallybook.errors import QueryError
from tallybook.journal import Journal
from tallybook.model import AccountDeclaration, Posting, Status, Transaction
from tallybook.money import parse_amount as amount
from tallybook.periods import Span, parse_span
from tallybook.query import parse_query

TODAY = date(2024, 5, 15)


def posting(account, text, **more):
    return Posting(account, amount(text), **more)


@pytest.fixture
def journal():
    books = Journal()
    books.declare(AccountDeclaration("wallet", AccountType.CASH))
    books.add(
        Transaction(
            date(2024, 3, 31),
            "Whole Foods | weekly",
            (
                posting("expenses:food", "$80.00", tags={"kind": "veg"}),
                posting("expenses:food:wine", "$20.00", status=Status.PENDING),
                posting("wallet", "-$100.00", comment="paid by me"),
            ),
            status=Status.CLEARED,
            code="A-17",
            tags={"who": "ann"},
        )
    )
    books.add(
        Transaction(
            date(2024, 4, 2),
            "Trattoria",
            (posting("Expenses:Dining", "30 EUR"), posting("assets:bank", "-30 EUR")),
            comment="birthday (mine)",
        )
    )
    return books


@pytest.fixture
def found(journal):
    def run(text):
        return [p.account for _, p in parse_query(text, TODAY).select(journal)]

    return run


FOOD, WINE, WALLET = "expenses:food", "expenses:food:wine", "wallet"
DINING, BANK = "Expenses:Dining", "assets:bank"


@pytest.mark.parametrize(
    ("text", "accounts"),
    [
        ("", [FOOD, WINE, WALLET, DINING, BANK]),
        ("FOOD", [FOOD, WINE]),
        ("expenses:d", [DINING]),
        ('acct:"^exp.*(g|e)$"', [WINE, DINING]),
        ("under:expenses:food", [FOOD, WINE]),
        ("under:expenses", [FOOD, WINE]),
        ('desc:"foods . w"', [FOOD, WINE, WALLET]),
        ("payee:^trattoria$", [DINING, BANK]),
        ("code:a-1", [FOOD, WINE, WALLET]),
        ("comment:mine", [DINING, BANK]),
        ("comment:PAID", [WALLET]),
        ("type:asset", [WALLET, BANK]),
        ("type:cash", [WALLET, BANK]),
        ("type:expense", [FOOD, WINE, DINING]),
        ("status:pending", [WINE]),
        ("status:*", [FOOD, WALLET]),
        ("status:unmarked", [DINING, BANK]),
        ("tag:who", [FOOD, WINE, WALLET]),
        ("tag:kind=veg", [FOOD]),
        ("tag:kind=ve", []),
        ("cur:EUR", [DINING, BANK]),
        ("date:2024-q1", [FOOD, WINE, WALLET]),
        ('date:"last month"', [DINING, BANK]),
        ("amt>20", [FOOD, DINING]),
        ("amt<=-$100", [WALLET]),
        ('abs>="30 EUR"', [DINING, BANK]),
        ("amt!=20", [FOOD, WALLET, DINING, BANK]),
        ("depth<=1", [WALLET]),
        ("depth=3", [WINE]),
    ],
    ids=(
        "nothing word colon-word acct under-account under-exact-case quoted-regex payee code "
        "comment-of-transaction comment-of-posting asset cash expense pending cleared unmarked "
        "tag tag-value tag-value-is-exact commodity date relative-date amt amt-with-commodity "
        "abs not-equal depth depth-equal"
    ).split(),
)
def test_terms(found, text, accounts):
    assert found(text) == accounts


@pytest.mark.parametrize(
    ("text", "accounts"),
    [
        ("food amt>20", [FOOD]),
        ("food AND amt>20", [FOOD]),
        ("wine or bank", [WINE, BANK]),
        ("not expenses", [WALLET, BANK]),
        ("not not wine", [WINE]),
        ("wine or expenses amt>50", [FOOD, WINE]),
        ("(wine or expenses) amt>50", [FOOD]),
        ("not (wine or wallet) code:a", [FOOD]),
        ("not wine or wallet", [FOOD, WALLET, DINING, BANK]),
    ],
    ids=(
        "side-by-side and or not double-not and-before-or parentheses not-group not-binds-tightest"
    ).split(),
)
def test_operators(found, text, accounts):
    assert found(text) == accounts


def test_a_quoted_keyword_is_a_word(found):
    assert found('"or"') == []
    assert found('"and"') == []


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("food and", 8),
        ("food )", 5),
        ("food (wine", 5),
        ("or food", 0),
        ('food desc:"x', 10),
        ("a date:nonsense", 2),
        ("a  acct:[", 3),
        ("status:late", 0),
        ("type:money", 0),
        ("amt>much", 0),
        ("depth<two", 0),
        ("tag:", 0),
    ],
    ids=(
        "missing-end stray-closing unclosed starts-with-or open-quote date regex status type amount "
        "depth no-value"
    ).split(),
)
def test_errors_name_the_column(text, column):
    with pytest.raises(QueryError) as caught:
        parse_query(text, TODAY)
    assert caught.value.column == column


def test_transactions_are_found_by_any_posting(journal):
    assert [t.payee for t in parse_query("wine").transactions(journal)] == ["Whole Foods"]
    assert [t.payee for t in parse_query("").transactions(journal, parse_span("2024-04"))] == [
        "Trattoria"
    ]
    assert parse_query("").transactions(journal, parse_span("2023")) == []


def test_selection_can_be_limited_to_a_span(journal):
    query = parse_query("expenses")
    assert [p.account for _, p in query.select(journal, parse_span("2024-03"))] == [FOOD, WINE]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("food", Span()),
        ("food date:2024-q1", parse_span("2024-q1")),
        ("date:2024-01.. date:..2024-02", parse_span("2024-01..2024-02")),
        ("date:2024-01 or date:2024-03", parse_span("2024-q1")),
        ("date:2024-01 or food", Span()),
        ("not date:2024-01", Span()),
    ],
    ids="no-date and intersection or half-an-or not".split(),
)
def test_the_span_a_query_implies(text, span):
    assert parse_query(text).span() == span


@pytest.mark.parametrize(
    "text",
    [
        "food and (wine OR not (a b))",
        'desc:"a b" tag:"x=y z" "or"',
        "amt>=$5 and depth<3 or status:!",
        "date:2024-01-01..2024-03-31 cur:EUR under:a:b type:Income",
        "",
    ],
    ids="nested quotes comparisons fields empty".split(),
)
def test_a_query_prints_as_a_text_that_means_the_same(text):
    tree = parse_query(text)
    assert parse_query(str(tree)) == tree
