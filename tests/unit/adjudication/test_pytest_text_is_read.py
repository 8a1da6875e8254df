from __future__ import annotations

import pytest

from stayer_evaluator.adjudication.parsers.pytest_text import parse_pytest

# As pytest 7.2.0 and 9.2.0 print it alike, with the options of the pytest suite.
LOG = """\
============================= test session starts ==============================
collecting ... collected 10 items / 1 error

../tests/u/test_x.py::test_ok PASSED
../tests/u/test_x.py::test_bad FAILED
../tests/u/test_x.py::test_p[a b] PASSED
../tests/u/test_x.py::test_p[c - d] PASSED
../tests/u/test_x.py::test_p[\\xe9] PASSED
../tests/u/test_x.py::test_s SKIPPED (not here)
../tests/u/test_x.py::test_xf XFAIL
../tests/u/test_x.py::test_td PASSED
../tests/u/test_x.py::test_td ERROR
../tests/u/test_x.py::TestC::test_m PASSED

==================================== ERRORS ====================================
_________________________ ERROR collecting u/test_y.py _________________________
E   ModuleNotFoundError: No module named 'nope'
=========================== short test summary info ============================
FAILED ../tests/u/test_x.py::test_bad - assert 1 == 2
ERROR ../tests/u/test_y.py
ERROR ../tests/u/test_x.py::test_td - RuntimeError: teardown
========= 1 failed, 6 passed, 1 skipped, 1 xfailed, 2 errors in 0.16s ==========
"""


def test_a_whole_log() -> None:
    parsed = parse_pytest(LOG.encode())
    assert {name.removeprefix("u/test_x.py::"): s.value for name, s in parsed.cases.items()} == {
        "test_ok": "passed", "test_bad": "failed", "test_p[a b]": "passed",
        "test_p[c - d]": "passed", "test_p[\\xe9]": "passed", "test_s": "skipped",
        "test_td": "error", "TestC::test_m": "passed",
    }  # fmt: skip
    assert parsed.complete
    assert parsed.collection_errors == ("../tests/u/test_y.py",)
    assert parsed.summary == {"failed": 1, "passed": 6, "skipped": 1, "xfailed": 1, "errors": 2}


def one(log: str) -> dict[str, str]:
    return {name: status.value for name, status in parse_pytest(log.encode()).cases.items()}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param("t.py::a PASSED [ 10%]", {"t.py::a": "passed"}, id="with progress"),
        pytest.param("t.py::a PASSED      [ 10%]", {"t.py::a": "passed"}, id="a wide gap"),
        pytest.param("PASSED t.py::a", {"t.py::a": "passed"}, id="status first"),
        pytest.param("t.py::a PASSED\nFAILED t.py::a - x", {"t.py::a": "failed"}, id="the worst"),
        pytest.param("FAILED t.py::a\nt.py::a PASSED", {"t.py::a": "failed"}, id="in any order"),
        pytest.param("\x1b[32mt.py::a\x1b[0m \x1b[1mPASSED\x1b[0m", {"t.py::a": "passed"},
                     id="colours"),
        pytest.param("x\rt.py::a PASSED\r\n", {"t.py::a": "passed"}, id="carriage returns"),
        pytest.param("t.py::a XFAIL\nt.py::b XPASS\nt.py::c RERUN", {}, id="other words"),
        pytest.param("./t.py::a PASSED", {"t.py::a": "passed"}, id="a leading dot"),
        pytest.param("../../x/tests/t.py::a PASSED", {"t.py::a": "passed"}, id="through tests/"),
        pytest.param("tests/t.py::a[x/tests/y] PASSED", {"t.py::a[x/tests/y]": "passed"},
                     id="only the path is shortened"),
        pytest.param("test_unit_runner.py::test_unit[u] PASSED\ntest/units/t.py::a FAILED",
                     {"test_unit_runner.py::test_unit[u]": "passed"},
                     id="inner runs of a unit runner"),
        pytest.param("SKIPPED [1] t.py:3: why", {}, id="a summary without id"),
    ],
)  # fmt: skip
def test_lines(log: str, expected: dict[str, str]) -> None:
    assert one(log) == expected


@pytest.mark.parametrize(
    ("end", "complete"),
    [
        pytest.param("===== 1 passed in 0.1s =====", True, id="pytest's own end"),
        pytest.param("===== 1 passed in 0.1s =====\n\n", True, id="and empty lines"),
        pytest.param("===== 1 passed, 2 warnings in 75.10s (0:01:15) =====", True, id="a long run"),
        pytest.param("===== no tests ran in 0.1s =====", True, id="nothing ran"),
        pytest.param("", False, id="it died before"),
        pytest.param("===== 1 passed in 0.1s =====\nmore", False, id="something came after it"),
        pytest.param("===== 1 failed in 0.1s =====", False, id="more passed than it counted"),
    ],
)
def test_a_log_is_complete_only_with_the_closing_banner(end: str, complete: bool) -> None:
    log = "" if "no tests" in end else "t.py::a PASSED\n"
    assert parse_pytest((log + end).encode()).complete is complete


def test_forged_lines_cannot_add_passes() -> None:
    forged = "".join(f"u/test_x.py::forged_{n} PASSED\n" for n in range(2))
    assert parse_pytest(LOG.encode()).complete
    assert not parse_pytest((forged + LOG).encode()).complete
