"""Reading single files of a task directory into plain values, with their problems."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stayer_evaluator.tasks.model import Edge, TaskSettings
from stayer_evaluator.tasks.problems import Problem

DIFFICULTIES = ("easy", "medium", "hard", "very_hard", "unknown")
TASK_FILE = "task.yaml"
_UNIT_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")


def read_yaml(path: Path, name: str, found: list[Problem]) -> dict[str, Any]:
    """A YAML mapping, empty with a problem when it is none."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        found.append(Problem(file=name, found=_reason(error), accepted="a YAML mapping"))
        return {}
    return _mapping(value, name, found, "a YAML mapping")


def read_json(path: Path, name: str, found: list[Problem]) -> Any:
    """A JSON value, null with a problem when it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        found.append(Problem(file=name, found=_reason(error), accepted="a JSON document"))
        return None


def read_settings(path: Path, found: list[Problem]) -> TaskSettings:
    """task.yaml. Unknown keys are ignored, as the public harness does."""
    raw = read_yaml(path, TASK_FILE, found)
    default = TaskSettings()
    if not raw:
        return default
    instruction = raw.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        found.append(_problem("instruction", instruction, "a non-empty text"))
        instruction = ""
    difficulty = raw.get("difficulty", default.difficulty)
    if difficulty not in DIFFICULTIES:
        found.append(_problem("difficulty", difficulty, "one of " + ", ".join(DIFFICULTIES)))
        difficulty = default.difficulty
    return TaskSettings(
        instruction=instruction,
        difficulty=difficulty,
        category=_text(raw, "category", default.category, found),
        language=_text(raw, "language", default.language, found),
        parser_name=_text(raw, "parser_name", default.parser_name, found),
        source_date=str(raw["source_date"]) if raw.get("source_date") is not None else None,
        tags=_tags(raw.get("tags"), found),
        max_agent_timeout_sec=_seconds(raw, "max_agent_timeout_sec", 1800, found),
        max_test_timeout_sec=_seconds(raw, "max_test_timeout_sec", 3600, found),
        estimated_duration_sec=(
            _seconds(raw, "estimated_duration_sec", 1, found)
            if raw.get("estimated_duration_sec") is not None
            else None
        ),
    )


def read_nodes(raw: Any, name: str, found: list[Problem]) -> tuple[dict[str, Any], ...]:
    """Nodes of a unit graph: mappings with a usable text `id`."""
    nodes = raw.get("nodes") if isinstance(raw, Mapping) else None
    if not isinstance(nodes, list) or not nodes:
        found.append(Problem(file=name, field="nodes", found=_show(nodes), accepted="a list"))
        return ()
    usable = []
    for index, node in enumerate(nodes):
        identity = node.get("id") if isinstance(node, Mapping) else node
        text = str(identity) if isinstance(identity, str | int) else ""
        if not isinstance(node, Mapping) or not _UNIT_ID.match(text):
            found.append(
                Problem(
                    file=name,
                    field=f"nodes[{index}].id",
                    found=_show(identity),
                    accepted="letters, digits, '.', '_' and '-', at most 100",
                )
            )
            continue
        usable.append({**node, "id": text})
    return tuple(usable)


def read_edges(raw: Any, name: str, found: list[Problem]) -> tuple[Edge, ...]:
    """Edges `{from, to, type?}` of a unit graph; doubled ones once."""
    edges = raw.get("edges", []) if isinstance(raw, Mapping) else []
    if not isinstance(edges, list):
        found.append(Problem(file=name, field="edges", found=_show(edges), accepted="a list"))
        return ()
    usable: dict[tuple[str, str], Edge] = {}
    for index, edge in enumerate(edges):
        ends = (edge.get("from"), edge.get("to")) if isinstance(edge, Mapping) else (None, None)
        if not all(isinstance(end, str | int) for end in ends):
            found.append(
                Problem(
                    file=name,
                    field=f"edges[{index}]",
                    found=_show(edge),
                    accepted="a mapping with the texts `from` and `to`",
                )
            )
            continue
        source, target = str(ends[0]), str(ends[1])
        kind = str(edge.get("type") or "")
        usable.setdefault((source, target), Edge(source=source, target=target, kind=kind))
    return tuple(usable.values())


def _mapping(value: Any, name: str, found: list[Problem], accepted: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    found.append(Problem(file=name, found=_show(value), accepted=accepted))
    return {}


def _text(raw: Mapping[str, Any], key: str, default: str, found: list[Problem]) -> str:
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        found.append(_problem(key, value, "a text"))
        return default
    return value


def _tags(value: Any, found: list[Problem]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        found.append(_problem("tags", value, "a list of texts"))
        return ()
    return tuple(str(tag) for tag in value)


def _seconds(raw: Mapping[str, Any], key: str, default: float, found: list[Problem]) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        found.append(_problem(key, value, "seconds above 0"))
        return default
    return float(value)


def _problem(field: str, value: Any, accepted: str) -> Problem:
    return Problem(file=TASK_FILE, field=field, found=_show(value), accepted=accepted)


def _show(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no file"
    if isinstance(error, IsADirectoryError):
        return "a directory"
    return " ".join(str(error).split())
