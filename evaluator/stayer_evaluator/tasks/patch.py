"""Sizes of patches, read from their text (no file is touched)."""

import re
from collections.abc import Iterator

_HUNK = re.compile(rb"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def changed_lines(patch: bytes) -> int:
    """Added plus removed lines of a unified diff; binary patches count 0 (evaluation.md §10.5)."""
    return sum(1 for _ in _changes(patch))


def _changes(patch: bytes) -> Iterator[bytes]:
    """The `+` and `-` lines inside hunks. Counting by the hunk header, not by the look of a line,
    keeps `--- old` and `+++ new` out and removed lines such as `-- SQL comment` in.
    """
    old = new = 0
    for line in patch.split(b"\n"):
        if old <= 0 and new <= 0:
            header = _HUNK.match(line)
            if header:
                old, new = (int(count) if count is not None else 1 for count in header.groups())
            continue
        match line[:1]:
            case b"+":
                new -= 1
                yield line
            case b"-":
                old -= 1
                yield line
            case b"\\":
                continue
            case _:
                old, new = old - 1, new - 1
