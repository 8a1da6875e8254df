import io
import subprocess
import sys

import pytest

from tallybook.cli import main
from tallybook.commands import discover

BOOKS = """\
commodity $1,000.00
commodity ACME

2024-01-01 * open
    assets:bank:main     $1,500.00
    equity:open

2024-02-10 * Corner Market | weekly shop for all of us
    expenses:food           $30.00  ; kind: veg
    assets:bank:main

2024-03-05 Corner Market
    expenses:food:wine      $20.00
    assets:bank:main

2024-03-20 ACME shares
    assets:broker            2 ACME @ $20.00
    assets:bank:main

P 2024-03-31 ACME $25.00
"""


@pytest.fixture
def books(tmp_path):
    path = tmp_path / "books.journal"
    path.write_text(BOOKS, encoding="utf-8")
    return path


@pytest.fixture
def run(books, monkeypatch):
    monkeypatch.delenv("TALLYBOOK_FILE", raising=False)

    def call(*argv):
        out, err = io.StringIO(), io.StringIO()
        code = main(["-f", str(books), "--today", "2024-04-15", *argv], out, err)
        return code, out.getvalue(), err.getvalue()

    return call


def test_the_commands_are_found():
    commands = {
        "accounts",
        "balance",
        "check",
        "close",
        "demo",
        "import",
        "prices",
        "print",
        "register",
        "report",
    }
    assert commands <= discover().keys()


def test_balance_is_a_tree(run):
    assert run("balance", "-p", "2024-q1", "--value", "$") == (
        0,
        "account           balance\n"
        "-------------  ----------\n"
        "assets          $1,460.00\n"
        "  bank:main     $1,410.00\n"
        "  broker           $50.00\n"
        "equity:open    -$1,500.00\n"
        "expenses:food      $50.00\n"
        "  wine             $20.00\n"
        "-------------  ----------\n"
        "total              $10.00\n",
        "",
    )


def test_balance_flat_with_query_period_and_depth(run):
    assert run("balance", "food", "or", "broker", "-p", "last month", "--flat", "--depth", "2")[
        1
    ] == (
        "account        balance\n"
        "-------------  -------\n"
        "assets:broker   2 ACME\n"
        "expenses:food   $20.00\n"
        "-------------  -------\n"
        "total           $20.00\n"
        "                2 ACME\n"
    )


def test_register(run):
    code, out, _ = run("register", "food")
    assert code == 0
    assert out.splitlines()[2:] == [
        "2024-02-10  Corner Market | weekly …  expenses:food       $30.00  $30.00",
        "2024-03-05  Corner Market             expenses:food:wine  $20.00  $50.00",
    ]
    _, out, _ = run("register", "food", "-p", "2024-03", "--historical")
    assert out.splitlines()[2].endswith("$20.00  $50.00")


def test_print_reads_back(run, books, tmp_path):
    code, out, _ = run("print", "tag:kind=veg")
    assert code == 0
    assert out.startswith(
        "2024-02-10 * Corner Market | weekly shop for all of us\n    expenses:food"
    )
    _, everything, _ = run("print")
    books.write_text(everything, encoding="utf-8")
    assert run("print")[1] == everything


def test_accounts(run):
    assert run("accounts", "food")[1] == "expenses:food\nexpenses:food:wine\n"
    assert "assets:bank:main  (cash)\n" in run("accounts", "--types")[1]


def test_check_fails_on_errors_only_unless_strict(run, books):
    assert run("check") == (0, "", "")
    books.write_text(BOOKS + "2024-01-01 back\n  a  $1\n  b\n", encoding="utf-8")
    code, out, _ = run("check")
    assert code == 0 and "[ordered-dates]" in out
    assert run("check", "--strict")[0] == 1
    books.write_text(BOOKS + "2024-05-01 claim\n  a  $1 = $5\n  b\n", encoding="utf-8")
    code, out, _ = run("check", "assertions")
    assert code == 1 and out.startswith(f"{books}:22: error: ")
    assert "assertions" in run("check", "--list")[1].splitlines()


def test_report_with_columns(run):
    code, out, _ = run("report", "income", "-p", "2024-q1", "-i", "monthly", "--depth", "1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Income statement"
    assert lines[2].split() == ["2024-01", "2024-02", "2024-03", "Total"]
    assert "expenses          0   $30.00   $20.00   $50.00" in lines


def test_report_defaults_to_all_days(run):
    _, out, _ = run("report", "sheet", "--value", "$")
    assert out.splitlines()[2].split() == ["2024-01-01..2024-03-20"]
    assert "Net worth" in out


def test_prices_and_gains(run):
    assert run("prices", "$", "--on", "2024-03-25")[1] == "1 ACME = $20.00\n"
    assert run("prices", "$")[1] == "1 ACME = $25.00\n"
    out = run("prices", "$", "--gains")[1]
    assert out.splitlines()[2].split() == [
        "assets:broker",
        "2",
        "ACME",
        "$40.00",
        "$50.00",
        "$10.00",
    ]


def test_close_prints_an_entry(run):
    code, out, _ = run("close", "2024-q1", "--into", "equity:result")
    assert code == 0
    assert out.splitlines()[0] == "2024-03-31 close books  ; closing:"
    assert out.splitlines()[-1].split() == ["equity:result", "$50.00"]
    assert run("close", "2024..")[0] == 1


def test_import_shows_then_appends_then_has_nothing_new(run, books, tmp_path):
    csv, rules = tmp_path / "bank.csv", tmp_path / "bank.rules"
    csv.write_text("2024-04-01,Corner Market,-12.00\n", encoding="utf-8")
    rules.write_text(
        "fields date,description,amount\ncurrency $\naccount assets:bank:main\n", encoding="utf-8"
    )
    code, out, _ = run("import", str(csv), "--rules", str(rules))
    assert code == 0
    assert out.splitlines()[0].startswith("2024-04-01 Corner Market  ; import-id: ")
    assert "expenses:food:wine" in out
    assert books.read_text(encoding="utf-8") == BOOKS
    assert run("import", str(csv), "--rules", str(rules), "--append")[1] == "1 new transactions\n"
    assert books.read_text(encoding="utf-8") == BOOKS + "\n" + out
    assert run("import", str(csv), "--rules", str(rules), "--append")[1] == "0 new transactions\n"


def test_demo_shows_the_sample(run):
    assert "household" in run("demo", "--list")[1].splitlines()
    code, out, _ = run("demo")
    assert code == 0
    assert out.splitlines()[0].split() == ["account", "balance"]
    assert any(line.startswith("assets") for line in out.splitlines())
    code, _, err = run("demo", "nobody")
    assert code == 1 and err == "tallybook: no such sample: nobody\n"


def test_problems_with_the_books_are_one_line_and_exit_code_1(run, books):
    books.write_text("nonsense\n", encoding="utf-8")
    assert run("balance") == (1, "", f"tallybook: {books}:1: unknown directive 'nonsense'\n")
    code, out, err = run("balance", "date:never")
    assert (code, out) == (1, "")


def test_a_wrong_query_names_its_column(run):
    code, _, err = run("balance", "food", "(")
    assert code == 1 and err.startswith("tallybook: column ")


def test_a_wrong_command_line_is_exit_code_2(run, capsys):
    assert run("fly")[0] == 2
    assert run()[0] == 2
    assert run("report", "nonsense")[0] == 2
    assert run("--version")[0] == 0
    assert capsys.readouterr().out.startswith("tallybook 0.")


def test_the_journal_may_come_from_the_environment(books, monkeypatch):
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.delenv("TALLYBOOK_FILE", raising=False)
    assert main(["accounts"], out, err) == 1
    assert "TALLYBOOK_FILE" in err.getvalue()
    monkeypatch.setenv("TALLYBOOK_FILE", str(books))
    assert main(["accounts", "equity"], out, err) == 0
    assert out.getvalue() == "equity:open\n"


def test_the_package_can_be_run(books):
    done = subprocess.run(
        [sys.executable, "-m", "tallybook", "-f", str(books), "accounts", "wine"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "expenses:food:wine\n")
