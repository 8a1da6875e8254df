"""What the last walk saw: lets the next one skip every file that cannot have changed."""

from typing import NamedTuple

from stayer_evaluator.records.queue import PathProblem
from stayer_evaluator.snapshots.manifest import Node

RACY_WINDOW_NS = 20_000_000
"""A file that changed less than this before its reading may be written to at that very moment, and
a change after it may carry the same time: file times advance with the kernel's tick (10 ms at the
slowest), and a write sets them before it copies its bytes. Only the ctime counts, as anybody can
set an mtime (security.md W10)."""
FUTURE_NS = 1_000_000_000
"""A ctime that far ahead of the clock is left from before the clock was set back."""

Signature = tuple[int, int, int, int, int]
"""Size, mtime, ctime (ns), inode, mode with type."""


class Seen(NamedTuple):
    """One path as it was last seen."""

    signature: Signature | None
    """None: read it again at the next walk, whatever its times say."""
    soft: Signature | None
    """As seen, even where it may not be trusted."""
    node: Node | None
    """None: the path is left out, for the reason in `problem`."""
    problem: PathProblem | None = None
    detail: str = ""


Listing = dict[str, Seen]
"""Name in one directory → what was seen. Names are surrogate-escaped as Python lists them."""

Index = dict[str, Listing]
"""Directory ("" or a path with trailing slash) → its listing."""
