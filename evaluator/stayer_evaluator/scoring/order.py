"""Order metrics (evaluation.md §6 and §10.6): in which order a trial went through its units."""

from collections.abc import Sequence
from itertools import combinations

import networkx as nx

from stayer_evaluator.records.queue import SnapshotEntry


def visitation(
    snapshots: Sequence[SnapshotEntry], reference_order: Sequence[str]
) -> tuple[str, ...]:
    """σ: units by the first snapshot in which their patch is non-empty.

    Ties, units that first appear in one snapshot, are broken by σ*; slugs that are no units of the
    task are left out.
    """
    first: dict[str, int] = {}
    for entry in snapshots:
        for unit in entry.implemented:
            first.setdefault(unit, entry.snapshot)
    place = {unit: index for index, unit in enumerate(reference_order)}
    known = (unit for unit in first if unit in place)
    return tuple(sorted(known, key=lambda unit: (first[unit], place[unit])))


def order_violations(sigma: Sequence[str], graph: "nx.DiGraph[str]") -> int:
    """Units in σ that precede one of their ancestors; an ancestor outside σ precedes nothing."""
    place = {unit: index for index, unit in enumerate(sigma)}
    return sum(
        any(place.get(ancestor, -1) > place[unit] for ancestor in nx.ancestors(graph, unit))
        for unit in sigma
    )


def order_diff(sigma: Sequence[str], reference_order: Sequence[str]) -> int:
    """Positions at which σ and σ*, restricted to the units of σ, differ."""
    implemented = set(sigma)
    expected = [unit for unit in reference_order if unit in implemented]
    return sum(a != b for a, b in zip(sigma, expected, strict=True))


def kendall_tau(sigma: Sequence[str], reference_order: Sequence[str]) -> float | None:
    """Kendall's τ-b of σ against σ* over implemented units; null for fewer than two.

    Neither order has ties, so τ-b is (concordant - discordant) / pairs.
    """
    if len(sigma) < 2:
        return None
    place = {unit: index for index, unit in enumerate(reference_order)}
    signs = [1 if place[a] < place[b] else -1 for a, b in combinations(sigma, 2)]
    return sum(signs) / len(signs)
