"""What the last walk saw: lets the next one skip every file that cannot have changed."""

from typing import Literal, NamedTuple

from stayer_evaluator.snapshots.manifest import Node

RACY_WINDOW_NS = 50_000_000
"""A change less than this before its reading may share the timestamp of a change after it: file
times advance with the kernel's tick (10 ms at the slowest), and git's racy rule applies. Only the
ctime counts, as anybody can set an mtime (security.md W10)."""

Signature = tuple[int, int, int, int, int]
"""Size, mtime, ctime (ns), inode, mode with type."""

Problem = Literal[
    "unstable",
    "vanished",
    "unreadable",
    "special_file",
    "too_large",
    "too_deep",
    "too_many_files",
    "escaping_link",
    "setuid_stripped",
    "sparse_capped",
]


class Seen(NamedTuple):
    """One path as it was last seen."""

    signature: Signature | None
    """None: read it again at the next walk, whatever its times say."""
    soft: Signature | None
    """As seen, even where it may not be trusted at the next walk."""
    node: Node | None
    """None: the path is left out, for the reason in `problem`."""
    problem: Problem | None = None
    detail: str = ""


Listing = dict[str, Seen]
"""Name in one directory → what was seen. Names are surrogate-escaped as Python lists them."""

Index = dict[str, Listing]
"""Directory ("" or a path with trailing slash) → its listing."""
