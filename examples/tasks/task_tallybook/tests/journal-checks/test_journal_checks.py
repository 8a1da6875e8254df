from datetime import date

import pytest

from tallybook.checks import Issue, available_checks, register_check, run_checks
from tallybook.errors import TallyError
from tallybook.journal import Journal
from tallybook.model import Posting, Transaction
from tallybook.money import parse_amount as amount
from tallybook.reader import read_text


def found(text, *names):
    return [
        (issue.check, issue.severity, issue.line)
        for issue in run_checks(read_text(text, source="books"), names or None)
    ]


CLEAN = "2024-01-01 a\n  assets:bank  $5  = $5\n  income:job\n2024-01-02 b\n  x  $1\n  y\n"


def test_all_checks_are_available():
    assert available_checks() == sorted(available_checks())
    assert {
        "assertions",
        "balanced",
        "declared-accounts",
        "declared-commodities",
        "duplicates",
        "ordered-dates",
        "rounding",
        "unused-accounts",
    } <= set(available_checks())


def test_clean_books_have_no_issues():
    assert found(CLEAN) == []


def test_an_unknown_check_is_an_error():
    with pytest.raises(TallyError, match="nonsense"):
        run_checks(Journal(), ["assertions", "nonsense"])


def test_assertions_follow_the_dates_not_the_lines():
    text = (
        "2024-01-02 later\n  a  $2  = $7\n  b\n"
        "2024-01-01 first\n  a  $5  = $5\n  b\n"
        "2024-01-03 wrong\n  a  $1  = $9\n  b  = $0\n"
    )
    assert found(text, "assertions") == [("assertions", "error", 8), ("assertions", "error", 9)]
    (message, _) = [i.message for i in run_checks(read_text(text), ["assertions"])]
    assert message == "a should hold $9 but holds $8"


def test_assertions_look_at_one_account_and_one_commodity():
    text = "2024-01-01 x\n  a  $2 = $2\n  a  3 EUR = 3 EUR\n  a:b  $1 = $1\n  a  $1 = $3\n  c  0 EUR = 0 EUR\n  d\n"
    assert found(text, "assertions") == []


def test_accounts_must_be_declared_once_any_is():
    text = (
        "account assets:bank\naccount income:job\n2024-01-01 x\n  assets:bnak  $5\n  income:job\n"
    )
    (issue,) = run_checks(read_text(text), ["declared-accounts"])
    assert (issue.severity, issue.line) == ("error", 4)
    assert issue.message == "assets:bnak is not declared; is it assets:bank?"
    assert found(text.replace("account ", "; account "), "declared-accounts") == []


def test_no_suggestion_when_nothing_is_near():
    text = "account x\n2024-01-01 x\n  x  $5\n  somewhere:else\n"
    (issue,) = run_checks(read_text(text), ["declared-accounts"])
    assert issue.message == "somewhere:else is not declared"


def test_commodities_must_be_declared_once_any_is():
    text = "commodity $1.00\n2024-01-01 x\n  a  3 EUR @ 2 CHF\n  b  -6 CHF\n2024-01-02 y\n  a  5\n  b\n"
    assert found(text, "declared-commodities") == [
        ("declared-commodities", "error", n) for n in (3, 3, 4)
    ]
    assert found(text.replace("commodity", "; "), "declared-commodities") == []


def test_dates_should_not_go_back():
    text = "".join(f"2024-01-0{n} x\n  a  $1\n  b\n" for n in (1, 5, 3, 4, 5))
    assert found(text, "ordered-dates") == [
        ("ordered-dates", "warning", 7),
        ("ordered-dates", "warning", 10),
    ]


def test_repeated_transactions_are_suspicious():
    text = (
        "2024-01-01 Shop | milk\n  a  $1\n  b\n"
        "2024-01-01 shop\n  b  $-1.00\n  a\n"
        "2024-01-01 shop\n  a  $2\n  b\n"
        "2024-01-02 shop\n  a  $1\n  b\n"
    )
    assert found(text, "duplicates") == [("duplicates", "warning", 4)]


def test_declared_accounts_should_be_used():
    text = "account a\naccount a:b\naccount c\n2024-01-01 x\n  a:b:d  $1\n  e\n"
    assert found(text, "unused-accounts") == [("unused-accounts", "warning", 3)]


def test_balance_within_the_tolerance_is_pointed_out():
    text = "2024-01-01 x\n  a  3 EUR @ $1.333\n  b  $-4.00\n"
    (issue,) = run_checks(read_text(text), ["rounding"])
    assert (issue.severity, issue.line, issue.message) == ("warning", 1, "-0.001 $ is left over")


def test_unbalanced_transactions_put_in_by_a_program_are_found():
    journal = Journal()
    journal.transactions.append(
        Transaction(
            date(2024, 1, 1), "odd", (Posting("a", amount("$1")), Posting("b", amount("$1")))
        )
    )
    (issue,) = run_checks(journal, ["balanced"])
    assert (issue.check, issue.severity) == ("balanced", "error")


def test_issues_are_sorted_by_place():
    text = "account c\n2024-01-02 x\n  c  $1 = $5\n  d\n2024-01-01 x\n  c  $1\n  c  $-1\n"
    assert found(text) == [
        ("assertions", "error", 3),
        ("declared-accounts", "error", 4),
        ("ordered-dates", "warning", 5),
    ]


def test_an_issue_is_one_line_of_text():
    issue = Issue("rounding", "warning", "odd", "books", 7)
    assert str(issue) == "books:7: warning: odd [rounding]"
    assert str(Issue("rounding", "error", "odd")) == "-: error: odd [rounding]"


def test_further_checks_can_be_registered():
    @register_check("test-no-raffles")
    def no_raffles(journal):  # stays registered, so it must not find anything in other tests
        for txn in journal.transactions:
            if txn.payee == "raffle":
                yield Issue("test-no-raffles", "warning", "a raffle", txn.source, txn.line)

    assert "test-no-raffles" in available_checks()
    raffle = "2024-01-01 raffle\n  a  $1\n  b\n"
    assert found(CLEAN + raffle, "test-no-raffles") == [("test-no-raffles", "warning", 7)]
