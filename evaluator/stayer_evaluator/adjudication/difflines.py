"""Diff sizes: added plus removed lines, as a line diff (Myers) counts them (evaluation.md §10.5).

Computed by us from snapshots, never with the agent's tools. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

#: Folders whose content is bookkeeping, not work.
UNCOUNTED = (b"requirement_patches/", b"agent_plans/", b"agent_tests/")
#: Edits after which counting exactly gives way to an estimate: some two million steps.
MAX_EDITS = 2000
#: A text file this large or larger is compared by its bag of lines only.
MAX_EXACT_BYTES = 16 * 1024**2
_SNIFF = 8000


def counted(path: bytes) -> bool:
    """The path takes part in D."""
    return not path.startswith(UNCOUNTED)


def is_binary(content: bytes) -> bool:
    """As git decides: a zero byte near the start."""
    return b"\0" in content[:_SNIFF]


def diff_lines(before: bytes | None, after: bytes | None) -> int:
    """Added plus removed lines between two contents; null = the file is not there.

    Binary contents count 0 on their side. Past `MAX_EDITS` edits the number is a lower bound: the
    lines that the two do not share at all, order left aside.
    """
    old, new = _lines(before), _lines(after)
    if max(len(before or b""), len(after or b"")) >= MAX_EXACT_BYTES:
        return _bag_distance(old, new)
    return line_distance(old, new)


def line_distance(old: Sequence[bytes], new: Sequence[bytes], max_edits: int = MAX_EDITS) -> int:
    """Length of the shortest edit script of insertions and deletions of lines."""
    old, new = _trim(old, new)
    common = set(old) & set(new)
    # A line found on one side only is an edit of its own and can be left out of the search.
    lone = sum(line not in common for line in old) + sum(line not in common for line in new)
    kept = _trim([line for line in old if line in common], [line for line in new if line in common])
    return lone + _myers(*kept, max_edits)


def _myers(old: Sequence[bytes], new: Sequence[bytes], max_edits: int) -> int:
    """Greedy algorithm of Myers (1986), distance only: O((N+M)·D) time, O(D) space."""
    if not old or not new:
        return len(old) + len(new)
    furthest = {1: 0}
    for edits in range(min(len(old) + len(new), max_edits) + 1):
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(old) and y >= len(new):
                return edits
    return _bag_distance(old, new)


def _bag_distance(old: Iterable[bytes], new: Iterable[bytes]) -> int:
    left, right = Counter(old), Counter(new)
    return (left - right).total() + (right - left).total()


def _trim(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    start, end = 0, 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[start : len(old) - end], new[start : len(new) - end]


def _lines(content: bytes | None) -> list[bytes]:
    if content is None or is_binary(content):
        return []
    return content.removesuffix(b"\n").split(b"\n") if content else []
