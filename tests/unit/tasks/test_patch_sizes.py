from __future__ import annotations

import pytest

from stayer_evaluator.tasks.patch import changed_lines


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        pytest.param(b"", 0, id="an empty patch"),
        pytest.param(b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n", 2, id="one changed line"),
        pytest.param(
            b"--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1 @@\n--- a comment\n x\n", 1,
            id="a removed line that looks like a header",
        ),
        pytest.param(
            b"--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n x\n+++ more\n", 1,
            id="an added line that looks like a header",
        ),
        pytest.param(
            b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", 2,
            id="a missing newline at the end is no line",
        ),
        pytest.param(
            b"diff --git a/p b/p\nGIT binary patch\nliteral 3\nKc-p+\n", 0, id="a binary patch"
        ),
        pytest.param(
            b"--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+b\n", 2,
            id="two files",
        ),
        pytest.param(b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", 2,
                     id="an empty context line that lost its space"),
    ],
)  # fmt: skip
def test_changed_lines(patch: bytes, lines: int) -> None:
    assert changed_lines(patch) == lines
