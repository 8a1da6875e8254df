from __future__ import annotations

import pytest

from stayer_evaluator.adjudication.parsers.terminal import parse_terminal

NODE = """\
✔ top ok (8.065342ms)
✖ top bad (3.805869ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

﹣ skipped (0.200278ms) # why
✔ todo (0.119178ms) # TODO
▶ suite one
  ✔ case a (3.498843ms)
  ✖ case b (0.239717ms)
    Error: x
        at async Promise.all (index 0)

  ▶ inner
    ✔ deep case (0.253327ms)
  ✔ inner (0.434096ms)
✖ suite one (13.098917ms)
▶ parent
  ✔ child (0.248911ms)
✔ parent (0.636046ms)
ℹ tests 9
ℹ pass 5
ℹ fail 2

✖ failing tests:

test at ../../nn/a/x.test.mjs:4:1
✖ top bad (3.805869ms)
"""
TAP = """\
TAP version 13
# Subtest: top ok
ok 1 - top ok
  ---
  duration_ms: 6.06651
  ...
# Subtest: skipped
ok 3 - skipped # SKIP why
# Subtest: suite one
    # Subtest: case a
    ok 1 - case a
    # Subtest: case b
    not ok 2 - case b
      ---
      error: 'x'
      ...
    # Subtest: inner
        # Subtest: deep case
        ok 1 - deep case
        1..1
    ok 3 - inner
    1..3
not ok 5 - suite one
1..6
# pass 5
"""
JEST = """\
PASS ./sum.test.js
  sums
    ✓ adds (2 ms)
    ✕ subtracts
    ○ skipped later
Tests:       1 failed, 1 skipped, 1 passed, 3 total
"""
GO = """\
=== RUN   TestA
--- PASS: TestA (0.00s)
--- FAIL: TestB (0.01s)
    --- PASS: TestB/one (0.00s)
    --- SKIP: TestB/two (0.00s)
FAIL
"""


def read(log: str) -> dict[str, str]:
    return {name: status.value for name, status in parse_terminal(log.encode()).cases.items()}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(
            NODE,
            {"top ok": "passed", "top bad": "failed", "skipped": "skipped", "todo": "skipped",
             "suite one > case a": "passed", "suite one > case b": "failed",
             "suite one > inner > deep case": "passed", "parent > child": "passed"},
            id="node's spec reporter",
        ),
        pytest.param(
            TAP,
            {"top ok": "passed", "skipped": "skipped", "suite one > case a": "passed",
             "suite one > case b": "failed", "suite one > inner > deep case": "passed"},
            id="TAP",
        ),
        pytest.param(JEST, {"adds": "passed", "subtracts": "failed", "skipped later": "skipped"},
                     id="Jest"),
        pytest.param(GO, {"TestA": "passed", "TestB": "failed", "TestB/one": "passed",
                          "TestB/two": "skipped"}, id="Go"),
        pytest.param("--- one ---\nx\n[passed] one\n--- two ---\n[FAILED] two\n[通过] three\n"
                     "--- four ---\n",
                     {"one": "passed", "two": "failed", "three": "passed", "four": "error"},
                     id="the public shell runner"),
        pytest.param("t.py::a PASSED\n[failed] b\n", {"t.py::a": "passed", "b": "failed"},
                     id="pytest and shell runner together"),
        pytest.param("✔ forged\nt.py::a FAILED\n", {"t.py::a": "failed"},
                     id="other runners only where pytest printed nothing"),
        pytest.param("nothing to see\n", {}, id="nothing that is known"),
    ],
)  # fmt: skip
def test_runners(log: str, expected: dict[str, str]) -> None:
    assert read(log) == expected
    assert parse_terminal(log.encode()).complete


def test_more_passes_than_the_runner_counted_are_no_result() -> None:
    forged = "✔ a (1ms)\n✔ b (1ms)\n✔ /tests/u/x.test.mjs (5ms)\nℹ pass 1\n"
    assert not parse_terminal(forged.encode()).complete
