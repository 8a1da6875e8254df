"""A task directory in the public format, old or new, as one frozen Task.

Old and new layouts differ only in names: a unit's files carry its id or `pr_<id>`, gold lies in
one shard per unit, in one patch for all, or both. Nothing is run and no symbolic link is followed
out of the directory (validation refuses links altogether).
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from stayer_evaluator.tasks.graph import DAG_FILE
from stayer_evaluator.tasks.model import Edge, Orders, Task, TaskSettings, Unit
from stayer_evaluator.tasks.problems import Problem, did_you_mean
from stayer_evaluator.tasks.sources import (
    TASK_FILE,
    read_edges,
    read_json,
    read_nodes,
    read_settings,
    read_yaml,
)

SLUG_MAP = "slug_diff_map.json"
WHOLE_GOLD = ("gold-patch.diff", "gold_patch.diff")
NOOP_FILES = (".loopsbench_split_noop.json", "gold_patches/.loopsbench_split_noop.json")


def read_task(root: Path) -> tuple[Task, tuple[Problem, ...]]:
    """As much of the task as can be read, and what is wrong with its files."""
    found: list[Problem] = []
    settings = (
        read_settings(root / TASK_FILE, found) if root.is_dir() else _no_directory(root, found)
    )
    dag = read_json(root / DAG_FILE, DAG_FILE, found) if root.is_dir() else {}
    nodes = read_nodes(dag, DAG_FILE, found) if dag is not None and root.is_dir() else ()
    slugs = _slug_map(root, found)
    units = tuple(_unit(root, node, slugs, found) for node in nodes)
    task = Task(
        root=root,
        name=root.resolve().name,
        settings=settings,
        units=units,
        edges=read_edges(dag, DAG_FILE, found) if dag is not None else (),
        orders=_orders(root, tuple(unit.id for unit in units), found),
        gold_whole=_first(root / name for name in WHOLE_GOLD),
        noop_units=_noop_units(root, found),
    )
    return task, tuple(found)


def unit_edges(edges: tuple[Edge, ...]) -> tuple[tuple[str, str], ...]:
    """Edges as pairs (prerequisite, unit)."""
    return tuple((edge.source, edge.target) for edge in edges)


def _no_directory(root: Path, found: list[Problem]) -> TaskSettings:
    what = "a file" if root.is_file() else "no directory"
    found.append(Problem(file=".", found=what, accepted="a task directory"))
    return TaskSettings()


def _unit(
    root: Path, node: Mapping[str, Any], slugs: Mapping[str, str], found: list[Problem]
) -> Unit:
    name = str(node["id"])
    requirement = _first(
        root / "requirements" / f"{stem}{suffix}"
        for stem in _stems(name)
        for suffix in (".yaml", ".yml")
    )
    mapped = [root / slugs[stem] for stem in _stems(name) if stem in slugs]
    layer = node.get("layer")
    return Unit(
        id=name,
        declared_layer=layer if isinstance(layer, int) and not isinstance(layer, bool) else None,
        declared_tests=node.get("has_tests") is True,
        title=_title(requirement, root, found) or str(node.get("label") or ""),
        requirement=requirement,
        gold=_first([*mapped, *(root / "gold_patches" / f"{s}.diff" for s in _stems(name))]),
        tests=_first((root / "tests" / s for s in _stems(name)), _holds_files),
    )


def _title(requirement: Path | None, root: Path, found: list[Problem]) -> str:
    if requirement is None:
        return ""
    name = requirement.relative_to(root).as_posix()
    raw = read_yaml(requirement, name, found)
    return str(raw.get("title") or "")


def _stems(unit: str) -> tuple[str, str]:
    return unit, f"pr_{unit}"


def _first(paths: Any, accept: Callable[[Path], bool] = Path.is_file) -> Path | None:
    return next((path for path in paths if accept(path)), None)


def _holds_files(path: Path) -> bool:
    return path.is_dir() and any(child.is_file() for child in path.rglob("*"))


def _slug_map(root: Path, found: list[Problem]) -> dict[str, str]:
    """Unit stem → patch path, paths that leave the directory refused."""
    path = root / SLUG_MAP
    if not path.is_file():
        return {}
    raw = read_json(path, SLUG_MAP, found)
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        found.append(Problem(file=SLUG_MAP, found="no mapping", accepted="{requirement: patch}"))
        return {}
    slugs = {}
    for key, value in raw.items():
        target = PurePosixPath(str(value))
        if target.is_absolute() or ".." in target.parts or not (root / target).is_file():
            found.append(
                Problem(
                    file=SLUG_MAP,
                    field=str(key),
                    found=repr(str(value)),
                    accepted="the path of a patch inside the task directory",
                )
            )
            continue
        slugs[_stem(str(key))] = str(target)
    return slugs


def _noop_units(root: Path, found: list[Problem]) -> frozenset[str]:
    """Units whose gold changes nothing; published tasks use either of two keys."""
    path = _first(root / name for name in NOOP_FILES)
    if path is None:
        return frozenset()
    raw = read_json(path, path.relative_to(root).as_posix(), found)
    listed = raw if isinstance(raw, list) else []
    if isinstance(raw, dict):
        listed = [u for key in ("noop", "noop_empty_units") for u in raw.get(key) or []]
    return frozenset(_stem(str(unit)) for unit in listed)


def _orders(root: Path, units: tuple[str, ...], found: list[Problem]) -> Orders:
    """What the task says of its own order, by source (evaluation.md §10.6)."""
    return Orders(
        patch=_patch_order(root, units, found),
        implementation=_implementation_order(root, units, found),
        solution=_solution_order(root, units),
    )


def _patch_order(root: Path, units: tuple[str, ...], found: list[Problem]) -> tuple[str, ...]:
    path = _first((root / "patch_order.json", root / "gold_patches" / "patch_order.json"))
    if path is None:
        return ()
    name = path.relative_to(root).as_posix()
    raw = read_json(path, name, found)
    if raw is None:
        return ()
    if not isinstance(raw, list):
        found.append(Problem(file=name, found="no list", accepted="a list of unit ids or patches"))
        return ()
    named = [(str(item), _unit_named(str(item), units)) for item in raw]
    for item, unit in named:
        if units and unit is None and not _is_patch(root, item):
            found.append(
                Problem(
                    file=name,
                    found=f"{item!r}, which is no unit and no patch",
                    accepted=f"ids of nodes in {DAG_FILE}{did_you_mean(_stem(item), units)}",
                )
            )
    return _known((unit for _, unit in named if unit is not None), units)


def _unit_named(item: str, units: tuple[str, ...]) -> str | None:
    """The unit that an id or the name of a patch speaks of."""
    return next((name for name in (item, f"pr_{_stem(item)}", _stem(item)) if name in units), None)


def _is_patch(root: Path, item: str) -> bool:
    """A patch of the task, such as the one for all units."""
    name = PurePosixPath(item).name
    return any((folder / name).is_file() for folder in (root, root / "gold_patches"))


def _implementation_order(
    root: Path, units: tuple[str, ...], found: list[Problem]
) -> tuple[str, ...]:
    path = root / "module_dag.yaml"
    if not path.is_file():
        return ()
    nodes = read_yaml(path, "module_dag.yaml", found).get("nodes")
    if not isinstance(nodes, list):
        return ()
    ranked = [
        (node["impl_order"], str(node.get("id")))
        for node in nodes
        if isinstance(node, dict) and isinstance(node.get("impl_order"), int)
    ]
    return _known((name for _, name in sorted(ranked, key=lambda pair: pair[0])), units)


def _solution_order(root: Path, units: tuple[str, ...]) -> tuple[str, ...]:
    """Units by their first mention in solution.sh as a whole word or a patch's name."""
    path = root / "solution.sh"
    if not path.is_file():
        return ()
    text = path.read_text(encoding="utf-8", errors="replace")
    places = []
    for unit in units:
        match = re.search(rf"(?<![\w.-])(?:pr_)?{re.escape(unit)}(?![\w-])", text)
        if match:
            places.append((match.start(), unit))
    return tuple(unit for _, unit in sorted(places))


def _known(names: Any, units: tuple[str, ...]) -> tuple[str, ...]:
    known = set(units)
    return tuple(dict.fromkeys(name for name in names if name in known))


def _stem(name: str) -> str:
    """A unit's id from a file name: folder, suffix and the legacy `pr_` prefix dropped."""
    base = PurePosixPath(name).name
    for suffix in (".diff", ".patch", ".yaml", ".yml"):
        base = base.removesuffix(suffix)
    return base.removeprefix("pr_")
