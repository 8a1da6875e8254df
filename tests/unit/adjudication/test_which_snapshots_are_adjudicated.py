from __future__ import annotations

import pytest

from makers_gate import make_gate
from stayer_evaluator.adjudication.checkpoint import Candidate, Rule, choose, threshold

GATE = make_gate("abc", [("a", "b")], untested="c")
SIZES = {"a": 40, "b": 12, "c": 1}


@pytest.mark.parametrize(
    ("cleared", "minimum", "lines"),
    [
        pytest.param((), 5, 40, id="the smallest gold patch that is ready"),
        pytest.param(("a",), 5, 12, id="another one after clearing"),
        pytest.param(("a",), 20, 20, id="at least minDiffLines"),
        pytest.param(("a", "b", "c"), 5, 5, id="an empty frontier"),
    ],
)
def test_threshold(cleared: tuple[str, ...], minimum: int, lines: int) -> None:
    assert threshold(GATE, SIZES, cleared, minimum) == lines


def test_an_empty_gold_patch_says_nothing_of_size() -> None:
    assert threshold(GATE, {"a": 0}, (), 5) == 5


def waiting(*sizes: int, last: bool = False, first: int = 1) -> list[Candidate]:
    return [
        Candidate(number=10 + n, snapshot=first + n, diff_lines=size,
                  last=last and n == len(sizes) - 1)
        for n, size in enumerate(sizes)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "rule", "last_diff", "number", "trigger", "passed", "coalesced"),
    [
        pytest.param(waiting(0, first=0), Rule(), None, 10, "first", (), (), id="the first one"),
        pytest.param(waiting(3, 9, 11), Rule(), 0, 12, "threshold", (10, 11), (), id="enough"),
        pytest.param(waiting(30), Rule(), 40, 10, "threshold", (), (), id="fewer lines count too"),
        pytest.param(waiting(31), Rule(), 40, None, None, (10,), (), id="too little"),
        pytest.param(waiting(40, last=True), Rule(), 40, 10, "last", (), (), id="the last always"),
        pytest.param(waiting(40, 40), Rule(every_snapshot=True), 40, 10, "every", (), (),
                     id="every snapshot, in order"),
        pytest.param(waiting(20, 25, 50), Rule(coalesce=True), 0, 12, "newest", (), (10, 11),
                     id="the newest that counts"),
        pytest.param(waiting(20, 25, 3), Rule(coalesce=True), 0, 11, "newest", (), (10,),
                     id="not one below the threshold"),
        pytest.param(waiting(20, 3, 3, last=True), Rule(coalesce=True), 0, 12, "last",
                     (11,), (10,), id="the last goes before all"),
        pytest.param(waiting(0, 90, first=0), Rule(coalesce=True), None, 10, "first", (), (),
                     id="the seeded workspace is never coalesced"),
        pytest.param([], Rule(), 0, None, None, (), (), id="nothing waits"),
    ],
)  # fmt: skip
def test_choice(
    candidates: list[Candidate], rule: Rule, last_diff: int | None, number: int | None,
    trigger: str | None, passed: tuple[int, ...], coalesced: tuple[int, ...],
) -> None:  # fmt: skip
    choice = choose(candidates, rule, last_diff=last_diff, threshold=10)
    assert (choice.candidate.number if choice.candidate else None) == number
    assert (choice.trigger, choice.passed, choice.coalesced) == (trigger, passed, coalesced)
