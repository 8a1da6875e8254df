"""Metrics of one trial (evaluation.md §6, with the settled points of §10)."""

from collections.abc import Mapping, Sequence

import networkx as nx

from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.queue import SnapshotEntry
from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.task import Inventory, UnitRecord
from stayer_evaluator.records.verdict import UnitResult, Verdict
from stayer_evaluator.scoring.order import (
    kendall_tau,
    order_diff,
    order_violations,
    visitation,
)


def score(
    units: tuple[UnitRecord, ...],
    reference_order: tuple[str, ...],
    inventory: Inventory,
    verdicts: Sequence[Verdict],
    snapshots: Sequence[SnapshotEntry],
    rounds: int,
) -> Metrics:
    """All metrics of a trial from its evidence.

    Args:
        units: the task's units; `layer` is ℓ of evaluation.md §1.
        reference_order: σ* over all unit ids.
        inventory: the expected cases, denominators of `tpr`.
        verdicts: in queue order, the last one of the last snapshot.
        snapshots: all snapshots in queue order, adjudicated or not.
        rounds: context-budget rounds of the episode.

    Raises:
        ValueError: without any verdict nothing can be scored.
    """
    if not verdicts:
        raise ValueError("a trial without a verdict has no metrics")
    graph = unit_graph(units)
    tested = {unit.id for unit in units if unit.has_tests}
    final = verdicts[-1]
    completion = tuple(u for v in verdicts for u in v.cleared if u in tested)
    cleared = set(completion)
    passing = {u for u in tested if _state(final, u) == UnitState.PASS}
    sigma = visitation(snapshots, reference_order)
    total = sum(len(inventory.units[u].cases) for u in tested if u in inventory.units)
    passed = _passed_cases(final.results, tested, inventory)
    regressed = {u for v in verdicts for u in v.regressions}
    return Metrics(
        resolved=bool(tested) and tested <= cleared and tested <= passing,
        tpr=passed / total if total else None,
        tpr_ungated=_passed_cases(final.suite, tested, inventory) / total if total else None,
        depth=depth(graph, units, passing),
        reg_events=sum(len(v.regressions) for v in verdicts),
        recoveries=sum(len(v.recoveries) for v in verdicts),
        reg_rate=len(regressed & cleared) / len(cleared) if cleared else None,
        reg_final=len(cleared - passing) / len(cleared) if cleared else None,
        rounds=rounds,
        sigma=sigma,
        completion_order=completion,
        order_violations=order_violations(sigma, graph),
        order_diff=order_diff(sigma, reference_order),
        kendall_tau=kendall_tau(sigma, reference_order),
        units_cleared=len(cleared),
        units_total=len(tested),
        cases_passed=passed,
        cases_total=total,
    )


def unit_graph(units: tuple[UnitRecord, ...]) -> "nx.DiGraph[str]":
    """G_H of evaluation.md §1: an edge leads from a prerequisite to the unit that needs it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for unit in units:
        graph.add_node(unit.id)
        graph.add_edges_from((prerequisite, unit.id) for prerequisite in unit.prerequisites)
    return graph


def depth(graph: "nx.DiGraph[str]", units: tuple[UnitRecord, ...], passing: set[str]) -> float:
    """(1 + max ℓ(u)) / D over units that pass with all their ancestors; 0 if none.

    A unit without tests counts as soon as its predecessors do (evaluation.md §6, §10.3); on its
    own, with nothing tested below it, it proves nothing and does not count.
    """
    layers = {unit.id: unit.layer for unit in units}
    tested = {unit.id for unit in units if unit.has_tests}
    holds: dict[str, bool] = {}
    for unit in sorted(units, key=lambda unit: unit.layer):
        below = all(holds[p] for p in unit.prerequisites)
        holds[unit.id] = below and (unit.id in passing or unit.id not in tested)
    counted = [
        layers[u]
        for u, good in holds.items()
        if good and (u in tested or any(a in tested for a in nx.ancestors(graph, u)))
    ]
    return (1 + max(counted)) / (1 + max(layers.values())) if counted else 0.0


def _state(verdict: Verdict, unit: str) -> UnitState:
    result = verdict.results.get(unit)
    return UnitState.SEALED if result is None else result.state


def _passed_cases(results: Mapping[str, UnitResult], tested: set[str], inventory: Inventory) -> int:
    """Expected cases that passed; ids outside the inventory count nothing (§10.2)."""
    return sum(
        status == CaseStatus.PASSED
        for unit in tested & results.keys() & inventory.units.keys()
        for case, status in results[unit].cases.items()
        if case in inventory.units[unit].cases
    )
