"""What `stayer storage prune` deletes. Pure: keys in, a plan out; a plan can be printed first."""

from collections.abc import Iterable
from dataclasses import dataclass

_LAST = ("results.json", "trial.json")
_ORDER = ("queue/", "verdicts/")


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """Keys in the order in which they are to be deleted, and how many stay."""

    delete: tuple[str, ...]
    kept: int
    by_prefix: tuple[tuple[str, int], ...]
    """Deleted keys for each asked prefix, in the order asked."""


def plan_prune(
    keys: Iterable[str],
    *,
    runs: tuple[str, ...] = (),
    tasks: tuple[str, ...] = (),
    keep_results: bool = False,
) -> PrunePlan:
    """Delete everything below the run prefixes and task digests named.

    With `keep_results` documents, verdicts, traces and results stay and only workspace states go.
    Queue entries go before the packs that they name and trial.json goes last: a deletion that is
    cut off leaves nothing that looks whole. Raises ValueError for a prefix that is not a run's.
    """
    for prefix in runs:
        if prefix.count("/") != 3 or not prefix.startswith("runs/") or not prefix.endswith("/"):
            raise ValueError(f"{prefix!r} is not a run's prefix (runs/<namespace>/<run>-<uid8>/)")
    prefixes = (*runs, *(f"tasks/{digest}/" for digest in tasks))
    chosen: dict[str, list[str]] = {prefix: [] for prefix in prefixes}
    kept = 0
    for key in keys:
        asked = next((prefix for prefix in prefixes if key.startswith(prefix)), None)
        if asked is None or (keep_results and asked in runs and not _is_state(key)):
            kept += 1
        else:
            chosen[asked].append(key)
    delete = sorted((key for found in chosen.values() for key in found), key=_rank)
    return PrunePlan(tuple(delete), kept, tuple((p, len(chosen[p])) for p in prefixes))


def _is_state(key: str) -> bool:
    parts = key.split("/")
    return len(parts) > 5 and parts[4] in ("packs", "resume", "queue")


def _rank(key: str) -> tuple[int, str]:
    relative = "/".join(key.split("/")[4:])
    if relative.startswith(_ORDER):
        return 0, key
    return (2 if key.endswith(_LAST) else 1), key
