"""Which snapshots are adjudicated (evaluation.md §3, §10.5, §10.6). Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stayer_evaluator.adjudication.gate import Gate

Trigger = Literal["first", "threshold", "every", "last", "newest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Settings of the checkpoint rule. `coalesce` is also set past the drain limit."""

    every_snapshot: bool = False
    min_diff_lines: int = 5
    coalesce: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A snapshot that waits; `diff_lines` is its D. `last`: the episode ended on it."""

    number: int
    snapshot: int
    diff_lines: int
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to do with the head of the queue: adjudicate `candidate` after dropping what precedes
    it. `passed` were below the rule, `coalesced` were eligible and are skipped all the same.
    """

    candidate: Candidate | None
    trigger: Trigger | None = None
    passed: tuple[int, ...] = ()
    coalesced: tuple[int, ...] = ()


def threshold(
    gate: Gate, gold_lines: Mapping[str, int], cleared: Collection[str], min_diff_lines: int
) -> int:
    """Lines of change that make a checkpoint: at least `min_diff_lines`, and the smallest gold
    patch on the ready frontier; an empty frontier leaves `min_diff_lines` (§10.6). Empty gold
    patches say nothing about size and do not count.
    """
    sizes = [gold_lines.get(unit, 0) for unit in gate.graph.ready(cleared) if unit in gate.tested]
    return max(min_diff_lines, min((size for size in sizes if size > 0), default=0))


def choose(
    waiting: Sequence[Candidate], rule: Rule, *, last_diff: int | None, threshold: int
) -> Choice:
    """The next checkpoint among the waiting snapshots, in queue order.

    Args:
        waiting: snapshots not yet considered, oldest first.
        rule: settings.
        last_diff: D of the last adjudicated snapshot; null before the first.
        threshold: see `threshold`, for the state after the last adjudicated snapshot.
    """
    eligible = [
        (candidate, trigger)
        for candidate in waiting
        if (trigger := _trigger(candidate, rule, last_diff, threshold)) is not None
    ]
    if not eligible:
        return Choice(candidate=None, passed=tuple(c.number for c in waiting))
    # The seeded workspace is adjudicated like the last snapshot: it is never coalesced.
    newest = rule.coalesce and eligible[0][1] != "first"
    candidate, trigger = eligible[-1] if newest else eligible[0]
    coalesced = tuple(c.number for c, _ in eligible if c.number < candidate.number)
    before = [c.number for c in waiting if c.number < candidate.number]
    return Choice(
        candidate=candidate,
        trigger="newest" if coalesced and trigger != "last" else trigger,
        passed=tuple(number for number in before if number not in coalesced),
        coalesced=coalesced,
    )


def _trigger(candidate: Candidate, rule: Rule, last_diff: int | None, limit: int) -> Trigger | None:
    if candidate.snapshot == 0 or last_diff is None:
        return "first"
    if candidate.last:
        return "last"
    if rule.every_snapshot:
        return "every"
    if abs(candidate.diff_lines - last_diff) >= limit:
        return "threshold"
    return None
