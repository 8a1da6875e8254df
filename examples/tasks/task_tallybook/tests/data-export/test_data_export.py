import io
import json

import pytest

from tallybook.cli import main
from tallybook.errors import ParseError
from tallybook.exporters import from_json, postings_csv, report_csv, report_html, to_json
from tallybook.periods import Every, parse_span, split
from tallybook.query import parse_query
from tallybook.reader import read_text
from tallybook.reports import Options, balance_sheet, cash_flow, income_statement
from tallybook.writer import write_journal

BOOKS = """\
commodity $1,000.00
account assets:bank  ; type: cash
account misc

P 2024-01-05 EUR $1.10

~ monthly from 2024-01 to 2024-06  rent
    expenses:rent    $900.00
    assets:bank

2024-01-05 * (17) "Shop" | milk, eggs  ; trip: rome
    ! expenses:food     $1,005.250  ; kind: snack
    ; second line
    assets:bank                      = $-1005.25

2024-02-01 Broker & Söhne
    assets:broker    2 ACME @ $40.00
    assets:bank
"""


@pytest.fixture
def journal():
    return read_text(BOOKS)


def test_json_is_versioned_and_keeps_every_digit(journal):
    document = json.loads(to_json(journal))
    assert (document["format"], document["version"]) == ("tallybook", 1)
    first = document["transactions"][0]
    assert (first["date"], first["status"], first["code"]) == ("2024-01-05", "*", "17")
    assert first["tags"] == {"trip": "rome"}
    assert first["postings"][0]["amount"] == {"quantity": "1005.250", "commodity": "$"}
    assert first["postings"][1]["assertion"] == {"quantity": "-1005.25", "commodity": "$"}
    bought = document["transactions"][1]["postings"][0]
    assert bought["cost"] == {"quantity": "40.00", "commodity": "$", "total": False}


def test_json_lists_declarations_prices_and_rules(journal):
    document = json.loads(to_json(journal))
    assert document["accounts"] == [
        {"name": "assets:bank", "type": "cash", "comment": "type: cash"},
        {"name": "misc", "type": None, "comment": ""},
    ]
    assert document["prices"] == [
        {
            "date": "2024-01-05",
            "commodity": "EUR",
            "price": {"quantity": "1.10", "commodity": "$"},
        }
    ]
    (rule,) = document["rules"]
    assert (rule["every"], rule["start"], rule["end"]) == ("monthly", "2024-01-01", "2024-07-01")
    symbols = {entry["symbol"]: entry for entry in document["commodities"]}
    assert (symbols["$"]["declared"], symbols["$"]["pinned"]) == (True, True)
    assert (symbols["ACME"]["declared"], symbols["ACME"]["pinned"]) == (False, False)


def test_json_is_the_same_every_time_and_readable(journal):
    text = to_json(journal)
    assert text == to_json(read_text(BOOKS))
    assert text.endswith("}\n") and "Söhne" in text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_json_reads_back(journal):
    again = from_json(to_json(journal))
    assert again.transactions == journal.transactions
    assert again.rules == journal.rules
    assert again.prices == journal.prices
    assert again.declarations == journal.declarations
    assert write_journal(again) == write_journal(journal)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": "other", "version": 1}',
        '{"format": "tallybook", "version": 2}',
        '{"format": "tallybook", "version": 1}',
    ],
    ids=["no-json", "no-object", "other-format", "other-version", "parts-missing"],
)
def test_other_json_is_refused(text):
    with pytest.raises(ParseError):
        from_json(text)


def test_malformed_values_are_refused(journal):
    text = to_json(journal)
    for wrong in [
        text.replace('"1005.250"', '"much"'),
        text.replace('"2024-01-05"', '"someday"'),
        text.replace('"type": "cash"', '"type": "money"'),
    ]:
        with pytest.raises(ParseError):
            from_json(wrong)


def test_postings_as_csv(journal):
    assert postings_csv(journal, parse_query("not broker date:2024-01")) == (
        "date,status,code,description,account,amount,commodity,comment\n"
        '2024-01-05,!,17,"""Shop"" | milk, eggs",expenses:food,1005.250,$,kind: snack second line\n'
        '2024-01-05,*,17,"""Shop"" | milk, eggs",assets:bank,-1005.250,$,\n'
    )
    assert len(postings_csv(journal).splitlines()) == 5


def test_reports_as_csv(journal):
    spans = split(parse_span("2024-01..2024-02"), Every("month"))
    report = income_statement(journal, Options(spans))
    assert report_csv(report, journal.styles) == (
        "section,account,2024-01,2024-02\n"
        "Income,Total,0,0\n"
        'Expenses,expenses:food,"$1,005.25",0\n'
        'Expenses,Total,"$1,005.25",0\n'
        ',Net income,"-$1,005.25",0\n'
    )


def test_reports_as_html(journal):
    report = cash_flow(journal, Options([parse_span("2024")]))
    assert report_html(report, journal.styles) == (
        "<table>\n"
        "<caption>Cash flow</caption>\n"
        "<thead><tr><th></th><th>2024</th></tr></thead>\n"
        "<tbody>\n"
        '<tr><th colspan="2">Cash</th></tr>\n'
        "<tr><th>assets:bank</th><td>-$1,085.25</td></tr>\n"
        '<tr class="total"><th>Total</th><td>-$1,085.25</td></tr>\n'
        "</tbody>\n"
        "</table>\n"
    )


def test_html_is_escaped_and_has_a_foot_when_there_is_a_net():
    journal = read_text('2024-01-01 x\n  assets:<b>&c  1 "A<B"\n  equity\n')
    text = report_html(balance_sheet(journal, Options([parse_span("2024")])))
    assert "<th>assets:&lt;b&gt;&amp;c</th><td>1 &quot;A&lt;B&quot;</td>" in text
    assert '<tfoot><tr class="net"><th>Net worth</th>' in text


def export(tmp_path, *argv):
    path = tmp_path / "books.journal"
    path.write_text(BOOKS, encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(["-f", str(path), "export", *argv], out, err)
    return code, out.getvalue()


def test_the_export_command_writes_the_journal(tmp_path):
    code, text = export(tmp_path, "json")
    assert code == 0 and from_json(text).transactions == read_text(BOOKS).transactions
    code, text = export(tmp_path, "csv", "cur:ACME")
    assert code == 0 and text.splitlines()[1:] == [
        "2024-02-01,,,Broker & Söhne,assets:broker,2,ACME,"
    ]


def test_the_export_command_writes_statements(tmp_path):
    code, text = export(tmp_path, "csv", "--report", "sheet", "-p", "2024-q1", "-i", "monthly")
    assert code == 0 and text.startswith("section,account,2024-01,2024-02,2024-03\n")
    code, text = export(tmp_path, "html", "--value", "$")
    assert code == 0 and text.startswith("<table>\n<caption>Balance changes</caption>\n")
    assert export(tmp_path, "pdf")[0] == 2
