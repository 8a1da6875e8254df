"""`task.json`: what the cluster needs to know of a task without opening its directory."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record


class UnitRecord(Record):
    """One development unit (evaluation.md §1)."""

    id: str
    layer: int = Field(ge=0, description="1 + the largest layer of its prerequisites, 0 without")
    has_tests: bool
    prerequisites: tuple[str, ...] = ()
    gold_lines: int = Field(default=0, ge=0, description="added + removed lines of its gold patch")
    title: str = ""


class TaskRecord(Record):
    """A pushed task."""

    schema_version: Literal["stayer.dev/task/v1"] = "stayer.dev/task/v1"
    name: str
    digest: str
    tree_digest: str = Field(description="sha256 over the task directory alone")
    image: str = Field(description="image reference with digest")
    instruction: str
    units: tuple[UnitRecord, ...]
    reference_order: tuple[str, ...] = Field(description="σ* of evaluation.md §10.6")
    depth: int = Field(ge=1)
    max_agent_timeout_sec: float = 1800
    max_test_timeout_sec: float = 3600
    estimated_duration_sec: float | None = None
    difficulty: str = "unknown"
    category: str = "general"
    language: str = "unknown"
    source_date: str | None = None
    tags: tuple[str, ...] = ()


class InventoryUnit(Record):
    """The test cases of a unit, as the gold solution ran them."""

    cases: tuple[str, ...]
    selectable: bool = Field(description="the suite can run this unit alone")
    finder: Literal["folder", "unit_runner", "named_ids", "whole_suite", "none"]
    skipped: tuple[str, ...] = Field(
        default=(), description="ids that gold skips: neither expected nor evidence of tampering"
    )


class Inventory(Record):
    """`inventory.json` of evaluation.md §10.2: denominators and the exact expected set."""

    schema_version: Literal["stayer.dev/inventory/v1"] = "stayer.dev/inventory/v1"
    task: str
    digest: str
    accepted: bool = Field(description="gold passes every unit; else the run is TaskRejected")
    problems: tuple[str, ...] = ()
    suite: str = Field(description="suite adapter that found the cases: pytest or script")
    units: dict[str, InventoryUnit]
    base_manifest: str = Field(description="sha256 of the base manifest object")
    interpreter: str = Field(default="", description="absolute path of the image's Python")
    path: str = Field(default="", description="PATH of the image, writable folders left out")
    canaries: Literal["native", "script"] = Field(
        default="native", description="what the suite's own command was seen to tell apart"
    )
