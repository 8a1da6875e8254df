"""A task directory as loaded: facts only, nothing decided yet."""

from dataclasses import dataclass
from pathlib import Path

#: The one pseudo-unit of a task without any unit tests (evaluation.md §10.3).
SUITE_UNIT = "__suite__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A node of `unit_dag.json` with the files that belong to it; null = there is none."""

    id: str
    declared_layer: int | None = None
    declared_tests: bool = False
    title: str = ""
    requirement: Path | None = None
    gold: Path | None = None
    tests: Path | None = None

    @property
    def has_tests(self) -> bool:
        """Declared, or a test folder of its own."""
        return self.declared_tests or self.tests is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`source` is a prerequisite of `target`."""

    source: str
    target: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """The part of task.yaml that means something here; defaults are the public format's."""

    instruction: str = ""
    difficulty: str = "unknown"
    category: str = "general"
    language: str = "unknown"
    parser_name: str = ""
    source_date: str | None = None
    tags: tuple[str, ...] = ()
    max_agent_timeout_sec: float = 1800
    max_test_timeout_sec: float = 3600
    estimated_duration_sec: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Candidate reference orders as declared, in unit ids; empty = not declared (§10.6)."""

    patch: tuple[str, ...] = ()
    implementation: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task directory."""

    root: Path
    name: str
    settings: TaskSettings
    units: tuple[Unit, ...]
    edges: tuple[Edge, ...]
    orders: Orders = Orders()
    gold_whole: Path | None = None
    noop_units: frozenset[str] = frozenset()
