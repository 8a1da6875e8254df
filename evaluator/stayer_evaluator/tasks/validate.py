"""All problems of a task directory, found together (evaluation.md §1)."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from stayer_evaluator.tasks.applies import gold_problems
from stayer_evaluator.tasks.digest import IGNORED_NAMES
from stayer_evaluator.tasks.graph import (
    DAG_FILE,
    UnitGraph,
    graph_problems,
    reference_order,
    respects,
)
from stayer_evaluator.tasks.load import SLUG_MAP, WHOLE_GOLD, read_task, unit_edges
from stayer_evaluator.tasks.mistakes import (
    empty_problems,
    folder_of_tasks,
    settings_warnings,
    test_folder_warnings,
)
from stayer_evaluator.tasks.model import Task, Unit
from stayer_evaluator.tasks.problems import Problem, warning
from stayer_evaluator.tasks.record import declared_orders, gold_lines, task_graph
from stayer_evaluator.tasks.sources import TASK_FILE, read_yaml

_NEEDED_FILES = ("Dockerfile", "run-tests.sh")
_NEEDED_FOLDERS = ("base", "requirements", "tests")
#: Names that give the solution away when they lie in the agent's starting workspace.
_GIVEAWAYS = frozenset(
    {"gold_patches", "solution.sh", "solution.yaml", "run-tests.sh", *WHOLE_GOLD, SLUG_MAP}
)
_EVIDENCE = frozenset(
    {
        "sequential_pr", "module_reuse", "producer_consumer", "compositional_layering",
        "module_dependency",
    }
)  # fmt: skip


def check_task(root: Path) -> tuple[Task, tuple[Problem, ...]]:
    """The task and everything that is wrong with it, warnings included. Raises nothing for a bad
    task: `problems.errors` says whether it can be used.
    """
    task, problems = read_task(root)
    whole = folder_of_tasks(root)
    if whole is not None:
        return task, (whole,)
    found = list(problems)
    if not root.is_dir():
        return task, tuple(found)
    found += settings_warnings(read_yaml(root / TASK_FILE, TASK_FILE, []))
    found += _layout_problems(root)
    found += empty_problems(root)
    found += _link_problems(root)
    found += _giveaway_problems(root / "base")
    for unit in task.units:
        found += _unit_problems(task, unit)
    if task.units:  # else the graph could not be read, and nothing can be compared with it
        found += _requirement_strays(task)
        found += _gold_set_problems(task)
        found += test_folder_warnings(task)
    faults = graph_problems([unit.id for unit in task.units], unit_edges(task.edges))
    found += faults
    found += _edge_warnings(task)
    if task.units and not faults:
        graph = task_graph(task)
        found += _layer_warnings(task, graph)
        found += _order_warnings(task, graph)
        found += gold_problems(task, reference_order(graph, declared_orders(task)))
    return task, tuple(dict.fromkeys(found))


def _layout_problems(root: Path) -> Iterator[Problem]:
    for name in _NEEDED_FILES:
        if not (root / name).is_file():
            yield Problem(file=name, found="no file", accepted="a file")
    for name in _NEEDED_FOLDERS:
        if not (root / name).is_dir():
            yield Problem(file=f"{name}/", found="no folder", accepted="a folder")


def _link_problems(root: Path) -> Iterator[Problem]:
    """Links would make digests and archives depend on the machine they are read on."""
    pending = [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if path.name in IGNORED_NAMES:
                continue
            if path.is_symlink():
                name = path.relative_to(root).as_posix()
                yield Problem(file=name, found="a symbolic link", accepted="files and folders")
            elif path.is_dir():
                pending.append(path)


def _giveaway_problems(base: Path) -> Iterator[Problem]:
    for path in sorted(base.rglob("*")) if base.is_dir() else ():
        if path.name in _GIVEAWAYS:
            yield Problem(
                file=path.relative_to(base.parent).as_posix(),
                found="a part of the solution or of the hidden suite",
                accepted="no such name anywhere below base/",
            )


def _unit_problems(task: Task, unit: Unit) -> Iterator[Problem]:
    yield from _requirement_problems(task, unit)
    if unit.declared_tests and unit.tests is None and not _suite_names(task, unit.id):
        yield Problem(
            file=DAG_FILE,
            field=f"nodes[id={unit.id}].has_tests",
            found="true, but no test of the suite belongs to the unit",
            accepted=f"tests/{unit.id}/, a unit runner that knows it, or tests that name it",
        )
    sharded = any(other.gold is not None for other in task.units)
    if sharded and unit.gold is None and unit.id not in task.noop_units:
        yield Problem(
            file=f"gold_patches/{unit.id}.diff",
            found="no file",
            accepted="a gold patch for every unit (an empty one where nothing changes)",
        )


def _requirement_problems(task: Task, unit: Unit) -> Iterator[Problem]:
    if unit.requirement is None:
        yield Problem(
            file=f"requirements/{unit.id}.yaml", found="no file", accepted="a requirement file"
        )
        return
    name = unit.requirement.relative_to(task.root).as_posix()
    try:
        raw = yaml.safe_load(unit.requirement.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return  # reported when the file was read
    if not isinstance(raw, dict):
        return
    stem = unit.requirement.stem
    if str(raw.get("id")) not in (unit.id, stem):
        yield Problem(file=name, field="id", found=repr(raw.get("id")), accepted=repr(stem))
    for field in ("title", "requirement"):
        if not isinstance(raw.get(field), str) or not raw[field].strip():
            yield Problem(
                file=name, field=field, found=repr(raw.get(field)), accepted="a non-empty text"
            )


def _requirement_strays(task: Task) -> Iterator[Problem]:
    known = {unit.requirement for unit in task.units}
    folder = task.root / "requirements"
    for path in sorted(folder.glob("*.y*ml")) if folder.is_dir() else ():
        if path not in known:
            yield Problem(
                file=path.relative_to(task.root).as_posix(),
                found="a requirement of no unit",
                accepted=f"the id of a node in {DAG_FILE}",
            )


def _gold_set_problems(task: Task) -> Iterator[Problem]:
    if not any(unit.gold is not None for unit in task.units):
        if task.gold_whole is None:
            yield Problem(
                file="gold_patches/",
                found="no gold patch",
                accepted="gold_patches/<unit>.diff for every unit, or gold-patch.diff",
            )
        else:
            yield warning(
                file=task.gold_whole.name,
                found="one gold patch for all units",
                accepted="gold_patches/<unit>.diff (without, checkpoints use minDiffLines alone)",
            )
    for unit in task.units:
        if unit.gold is not None and unit.gold.stat().st_size and not gold_lines(unit):
            yield warning(
                file=unit.gold.relative_to(task.root).as_posix(),
                found="a patch without text lines",
                accepted="a unified diff; binary changes count 0 lines",
            )


def _edge_warnings(task: Task) -> Iterator[Problem]:
    for edge in task.edges:
        if edge.kind and edge.kind not in _EVIDENCE:
            yield warning(
                file=DAG_FILE,
                field=f"edges[{edge.source} -> {edge.target}].type",
                found=repr(edge.kind),
                accepted=", ".join(sorted(_EVIDENCE)),
            )


def _layer_warnings(task: Task, graph: UnitGraph) -> Iterator[Problem]:
    declared = {u.id: u.declared_layer for u in task.units if u.declared_layer is not None}
    # Published tasks count layers from 0 or from 1; only what contradicts the edges matters.
    offset = min(declared.values(), default=0)
    for unit in task.units:
        layer = declared.get(unit.id)
        below = [
            p for p in graph.prerequisites[unit.id] if layer is not None and p in declared
            and declared[p] >= layer
        ]  # fmt: skip
        if below:
            yield warning(
                file=DAG_FILE,
                field=f"nodes[id={unit.id}].layer",
                found=f"{layer}, not above its prerequisite {below[0]} ({declared[below[0]]})",
                accepted=f"{graph.layers[unit.id] + offset}",
            )


def _order_warnings(task: Task, graph: UnitGraph) -> Iterator[Problem]:
    declared = declared_orders(task)
    if declared and not respects(graph, declared[0]):
        yield warning(
            file="patch_order.json" if task.orders.patch else "module_dag.yaml or solution.sh",
            found="an order that places a unit before one of its prerequisites",
            accepted="an order along the edges (it is repaired along them)",
        )


def _suite_names(task: Task, unit: str) -> bool:
    """Some file of the suite mentions the unit: a unit runner or tests that name it."""
    spellings = {unit.encode(), unit.replace("-", "_").encode()}
    paths = [task.root / "run-tests.sh", *(task.root / "tests").rglob("*")]
    return any(
        (path.is_file() and any(spelling in path.read_bytes() for spelling in spellings))
        or any(spelling.decode() in path.name for spelling in spellings)
        for path in paths
    )
