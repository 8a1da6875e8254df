"""The unit graph G_H of evaluation.md §1: layers, depth, frontier, reference order. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from stayer_evaluator.records.task import UnitRecord
from stayer_evaluator.tasks.problems import Problem

DAG_FILE = "unit_dag.json"


@dataclass(frozen=True, slots=True, eq=False)
class UnitGraph:
    """An acyclic unit graph. `order` is topological, ties in declaration order."""

    order: tuple[str, ...]
    prerequisites: Mapping[str, tuple[str, ...]]
    successors: Mapping[str, tuple[str, ...]]
    layers: Mapping[str, int]
    ancestors: Mapping[str, frozenset[str]]

    @property
    def depth(self) -> int:
        """D = 1 + max ℓ: nodes on the longest chain (evaluation.md §1)."""
        return 1 + max(self.layers.values())

    def ready(self, cleared: Collection[str]) -> tuple[str, ...]:
        """Units outside `cleared` whose prerequisites are all in it, in topological order."""
        return tuple(
            unit
            for unit in self.order
            if unit not in cleared and all(p in cleared for p in self.prerequisites[unit])
        )


def build_graph(units: Sequence[str], edges: Iterable[tuple[str, str]]) -> UnitGraph:
    """The graph of known, unique units and acyclic edges; see `graph_problems` for the rest.

    Raises:
        ValueError: for anything that `graph_problems` reports, or without any unit.
    """
    edges = tuple(edges)
    if not units or graph_problems(units, edges):
        raise ValueError("not an acyclic graph over unique units")
    graph = _digraph(units, edges)
    position = {unit: index for index, unit in enumerate(units)}
    order = tuple(nx.lexicographical_topological_sort(graph, key=position.__getitem__))
    layers: dict[str, int] = {}
    for unit in order:
        layers[unit] = 1 + max((layers[p] for p in graph.predecessors(unit)), default=-1)
    return UnitGraph(
        order=order,
        prerequisites={u: _sorted(graph.predecessors(u), position) for u in order},
        successors={u: _sorted(graph.successors(u), position) for u in order},
        layers=layers,
        ancestors={u: frozenset(nx.ancestors(graph, u)) for u in order},
    )


def graph_of_records(units: Iterable[UnitRecord]) -> UnitGraph:
    """The graph of a pushed task."""
    units = tuple(units)
    edges = ((prerequisite, unit.id) for unit in units for prerequisite in unit.prerequisites)
    return build_graph([unit.id for unit in units], edges)


def graph_problems(
    units: Sequence[str], edges: Iterable[tuple[str, str]], file: str = DAG_FILE
) -> tuple[Problem, ...]:
    """Duplicate ids, edges to unknown units, and every cycle by name, all together."""
    edges = tuple(edges)
    known = set(units)
    found = [
        Problem(
            file=file,
            field=f"nodes[id={unit}]",
            found=f"the id {unit!r} {count} times",
            accepted="each unit id once",
        )
        for unit, count in Counter(units).items()
        if count > 1
    ]
    for source, target in edges:
        unknown = [unit for unit in (source, target) if unit not in known]
        found += [
            Problem(
                file=file,
                field=f"edges[{source} -> {target}]",
                found=f"the unknown unit {unit!r}",
                accepted="ids of nodes in the same file",
            )
            for unit in dict.fromkeys(unknown)
        ]
    return (*found, *_cycles(units, edges, file))


def _cycles(
    units: Sequence[str], edges: tuple[tuple[str, str], ...], file: str
) -> tuple[Problem, ...]:
    known = set(units)
    graph = _digraph(tuple(dict.fromkeys(units)), (e for e in edges if known.issuperset(e)))
    found = []
    for component in sorted(nx.strongly_connected_components(graph), key=sorted):
        part = graph.subgraph(component)
        if part.number_of_edges() and (len(component) > 1 or nx.number_of_selfloops(part)):
            cycle = [source for source, _ in nx.find_cycle(part)]
            start = cycle.index(min(cycle))
            path = [*cycle[start:], *cycle[: start + 1]]
            found.append(
                Problem(
                    file=file,
                    field="edges",
                    found=f"the cycle {' -> '.join(path)}",
                    accepted="an acyclic graph",
                )
            )
    return tuple(found)


def reference_order(graph: UnitGraph, declared: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """σ* (evaluation.md §10.6): the first declared order that names a unit, made topological.

    An order that names all units and respects the edges is returned as it is. Units that it leaves
    out follow as soon as their prerequisites allow, in declaration order; an order that
    contradicts the edges is repaired in the same way, as edges count more than its claim.
    """
    chosen = next((o for o in declared if any(unit in graph.layers for unit in o)), ())
    rank = {unit: index for index, unit in enumerate(dict.fromkeys(chosen))}
    position = {unit: (rank.get(unit, len(rank)), index) for index, unit in enumerate(graph.order)}
    edges = ((p, unit) for unit in graph.order for p in graph.prerequisites[unit])
    ordered = nx.lexicographical_topological_sort(
        _digraph(graph.order, edges), key=position.__getitem__
    )
    return tuple(ordered)


def respects(graph: UnitGraph, order: Sequence[str]) -> bool:
    """No unit stands before one of its ancestors."""
    seen = set[str]()
    for unit in order:
        seen.add(unit)
        if unit in graph.ancestors and graph.ancestors[unit] & (set(order) - seen):
            return False
    return True


def _digraph(units: Sequence[str], edges: Iterable[tuple[str, str]]) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(units)
    graph.add_edges_from(edges)
    return graph


def _sorted(units: Iterable[str], position: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(units, key=position.__getitem__))
