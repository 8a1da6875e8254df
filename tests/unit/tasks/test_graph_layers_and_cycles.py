from __future__ import annotations

import pytest

from stayer_evaluator.tasks.graph import build_graph, graph_problems, reference_order, respects

UNITS = ["c", "a", "b", "d", "e"]
EDGES = [("a", "b"), ("b", "d"), ("a", "d"), ("c", "d")]


def test_layers_depth_ancestors_and_topological_order_with_declaration_ties() -> None:
    graph = build_graph(UNITS, EDGES)
    assert graph.order == ("c", "a", "b", "d", "e")
    assert dict(graph.layers) == {"c": 0, "a": 0, "b": 1, "d": 2, "e": 0}
    assert graph.depth == 3
    assert graph.ancestors["d"] == {"a", "b", "c"}
    assert graph.prerequisites["d"] == ("c", "a", "b")
    assert graph.successors["a"] == ("b", "d")


@pytest.mark.parametrize(
    ("cleared", "ready"),
    [
        pytest.param((), ("c", "a", "e"), id="at first: units without prerequisites"),
        pytest.param(("a",), ("c", "b", "e"), id="a cleared unit frees its successors"),
        pytest.param(("a", "b"), ("c", "e"), id="a gate waits for all its prerequisites"),
        pytest.param(("a", "b", "c"), ("d", "e"), id="all prerequisites cleared"),
        pytest.param(("a", "b", "c", "d", "e"), (), id="nothing is left"),
    ],
)
def test_ready_frontier(cleared: tuple[str, ...], ready: tuple[str, ...]) -> None:
    assert build_graph(UNITS, EDGES).ready(cleared) == ready


def test_every_fault_is_named_and_all_are_found_together() -> None:
    problems = graph_problems(
        ["a", "b", "c", "c", "x"],
        [("a", "b"), ("b", "c"), ("c", "a"), ("a", "ghost"), ("x", "x")],
    )
    assert [problem.found for problem in problems] == [
        "the id 'c' 2 times",
        "the unknown unit 'ghost'",
        "the cycle a -> b -> c -> a",
        "the cycle x -> x",
    ]


def test_a_faulty_graph_is_not_built() -> None:
    with pytest.raises(ValueError, match="acyclic"):
        build_graph(["a", "b"], [("a", "b"), ("b", "a")])
    with pytest.raises(ValueError, match="acyclic"):
        build_graph([], [])


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        pytest.param([("e", "a", "c", "b", "d")], ("e", "a", "c", "b", "d"), id="whole and right"),
        pytest.param([(), ("e", "a")], ("e", "a", "c", "b", "d"), id="partial: the rest follows"),
        pytest.param([("d", "a", "b", "c", "e")], ("a", "b", "c", "d", "e"), id="repaired"),
        pytest.param(
            [("nobody",), ("b", "a")], ("a", "b", "c", "d", "e"), id="first that knows one"
        ),
        pytest.param([], ("c", "a", "b", "d", "e"), id="none declared: topological"),
    ],
)
def test_reference_order(declared: list[tuple[str, ...]], expected: tuple[str, ...]) -> None:
    order = reference_order(build_graph(UNITS, EDGES), declared)
    assert order == expected
    assert respects(build_graph(UNITS, EDGES), order)


def test_an_order_that_places_a_unit_before_its_ancestor_is_noticed() -> None:
    graph = build_graph(UNITS, EDGES)
    assert not respects(graph, ("d", "a"))
    assert respects(graph, ("a", "e", "d"))
