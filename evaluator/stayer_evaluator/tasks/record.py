"""Task + image → TaskRecord, the document that the cluster knows a task by."""

from stayer_evaluator.records.task import TaskRecord, UnitRecord
from stayer_evaluator.tasks.digest import task_digest, tree_digest
from stayer_evaluator.tasks.graph import UnitGraph, build_graph, reference_order
from stayer_evaluator.tasks.load import unit_edges
from stayer_evaluator.tasks.model import SUITE_UNIT, Task, Unit
from stayer_evaluator.tasks.patch import changed_lines


def task_graph(task: Task) -> UnitGraph:
    """The unit graph of a valid task, the pseudo-unit of §10.3 included."""
    names = [unit.id for unit in task.units]
    edges = unit_edges(task.edges)
    if needs_suite_unit(task):
        roots = set(names) - {target for _, target in edges}
        edges = (*((SUITE_UNIT, root) for root in names if root in roots), *edges)
        names = [SUITE_UNIT, *names]
    return build_graph(names, edges)


def needs_suite_unit(task: Task) -> bool:
    """No unit has tests of its own, but the task has a suite (evaluation.md §10.3).

    The pseudo-unit stands before all others: so the units, transparent as they are, count in
    `depth` only once the suite passes, and the order metrics over them keep their meaning.
    """
    tests = task.root / "tests"
    has_suite = tests.is_dir() and any(path.is_file() for path in tests.rglob("*"))
    return has_suite and not any(unit.has_tests for unit in task.units)


def declared_orders(task: Task) -> tuple[tuple[str, ...], ...]:
    """Candidates for σ* in the order of evaluation.md §10.6; empty ones do not count."""
    return tuple(
        order
        for order in (task.orders.patch, task.orders.implementation, task.orders.solution)
        if order
    )


def task_record(task: Task, image: str) -> TaskRecord:
    """The record of a valid task.

    Raises:
        ValueError: the image reference has no digest, or the graph is not valid.
    """
    graph = task_graph(task)
    tree = tree_digest(task.root)
    units = {unit.id: unit for unit in task.units}
    settings = task.settings
    return TaskRecord(
        name=task.name,
        digest=task_digest(tree, image),
        tree_digest=tree,
        image=image,
        instruction=settings.instruction,
        units=tuple(_unit_record(name, units.get(name), graph, task) for name in graph.order),
        reference_order=reference_order(graph, declared_orders(task)),
        depth=graph.depth,
        max_agent_timeout_sec=settings.max_agent_timeout_sec,
        max_test_timeout_sec=settings.max_test_timeout_sec,
        estimated_duration_sec=settings.estimated_duration_sec,
        difficulty=settings.difficulty,
        category=settings.category,
        language=settings.language,
        source_date=settings.source_date,
        tags=settings.tags,
    )


def _unit_record(name: str, unit: Unit | None, graph: UnitGraph, task: Task) -> UnitRecord:
    if unit is None:  # the pseudo-unit: as large as the smallest real one, so that it is sampled
        sizes = [size for size in map(gold_lines, task.units) if size]
        return UnitRecord(
            id=name, layer=graph.layers[name], has_tests=True, gold_lines=min(sizes, default=0),
            title="the whole suite",
        )  # fmt: skip
    return UnitRecord(
        id=name,
        layer=graph.layers[name],
        has_tests=unit.has_tests,
        prerequisites=graph.prerequisites[name],
        gold_lines=gold_lines(unit),
        title=unit.title,
    )


def gold_lines(unit: Unit) -> int:
    """Added plus removed lines of the unit's own gold patch; 0 without one."""
    return changed_lines(unit.gold.read_bytes()) if unit.gold is not None else 0
