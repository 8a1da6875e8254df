from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stayer_evaluator.adjudication.difflines import counted, diff_lines, line_distance


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(None, b"a\nb\n", 2, id="a new file"),
        pytest.param(b"a\nb\n", None, 2, id="a deleted file"),
        pytest.param(b"a\nb\n", b"a\nb\n", 0, id="the same"),
        pytest.param(b"a\nb\nc\n", b"a\nx\nc\n", 2, id="a changed line"),
        pytest.param(b"a\nb", b"a\nb\n", 0, id="a newline at the end alone"),
        pytest.param(None, b"", 0, id="an empty file"),
        pytest.param(b"a\nb\nc\nd\n", b"b\nc\nd\na\n", 2, id="a moved line"),
        pytest.param(None, b"a\0b\n" * 9, 0, id="a binary file"),
        pytest.param(b"a\nb\n", b"\0", 2, id="text that became binary"),
        pytest.param(b"\xff\n", b"\xfe\n", 2, id="bytes that are no UTF-8"),
    ],
)
def test_diff_lines(before: bytes | None, after: bytes | None, lines: int) -> None:
    assert diff_lines(before, after) == lines


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        (b"src/a.py", True),
        (b"requirement_patches/a.diff", False),
        (b"agent_plans/plan.json", False),
        (b"agent_tests/test_a.py", False),
        (b"src/agent_tests/test_a.py", True),
        (b"requirements/a.yaml", True),
    ],
)
def test_bookkeeping_does_not_count(path: bytes, counts: bool) -> None:
    assert counted(path) is counts


texts = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=14)


def shortest(old: list[bytes], new: list[bytes]) -> int:
    """By the longest common subsequence, the slow and certain way."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row[:]
        for j, other in enumerate(new, 1):
            row[j] = above[j - 1] + 1 if line == other else max(above[j], row[j - 1])
    return len(old) + len(new) - 2 * row[-1]


@given(texts, texts)
def test_the_distance_is_that_of_the_shortest_script(old: list[bytes], new: list[bytes]) -> None:
    assert line_distance(old, new) == shortest(old, new)


@given(texts, texts)
def test_past_the_cap_it_is_a_lower_bound(old: list[bytes], new: list[bytes]) -> None:
    exact = shortest(old, new)
    assert line_distance(old, new, max_edits=1) <= exact


def test_a_large_rewrite_is_counted_in_time() -> None:
    old = [b"line %d" % n for n in range(20_000)]
    new = [b"other %d" % n for n in range(20_000)]
    assert line_distance(old, new) == 40_000
    shuffled = [old[n * 7919 % 20_000] for n in range(20_000)]
    assert line_distance(old, shuffled, max_edits=200) == 0
