"""What `stayer storage report` tells. Pure: keys with sizes in, one line a run or task out."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

_STATES = frozenset({"packs", "resume", "queue"})
_DEPTHS = {"runs": 3, "tasks": 2}


class Usage(NamedTuple):
    """What lies below one prefix, which `stayer storage prune` takes as it is."""

    prefix: str
    trials: int | None
    """None for a task."""
    objects: int
    bytes: int
    states: int
    """Those of the bytes that hold workspace states: what `--keep-results` deletes."""


def usage_by_prefix(sizes: Mapping[str, int]) -> list[Usage]:
    """Runs and tasks, most bytes first; other keys (task sets, for one) by their first part."""
    below: dict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for key, size in sizes.items():
        parts = key.split("/")
        depth = min(_DEPTHS.get(parts[0], 1), len(parts) - 1)
        prefix = "/".join(parts[:depth]) + "/" if depth else key
        below[prefix].append((parts[depth:], size))
    found = [_usage(prefix, rests) for prefix, rests in below.items()]
    return sorted(found, key=lambda usage: (-usage.bytes, usage.prefix))


def _usage(prefix: str, rests: list[tuple[list[str], int]]) -> Usage:
    run = prefix.startswith("runs/")
    states = sum(size for rest, size in rests if run and len(rest) > 2 and rest[1] in _STATES)
    return Usage(
        prefix=prefix,
        trials=len({rest[0] for rest, _ in rests if len(rest) > 1}) if run else None,
        objects=len(rests),
        bytes=sum(size for _, size in rests),
        states=states,
    )
