"""spec.matrix -> cells."""

from __future__ import annotations

from typing import Any

import pytest

from makers_run import make_spec, make_task
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.cells import run_cells

TASKS = (make_task("ledger"), make_task("parser"))
AGENTS = [{"name": "a", "harness": "oracle"}, {"name": "b", "harness": "nop"}]
MODELS = [{"name": "small"}, {"name": "large"}]


def cells(matrix: dict[str, Any], **spec: Any) -> list[str]:
    parsed = RunSpec.model_validate(make_spec(matrix={"agents": AGENTS, **matrix}, **spec))
    return [
        f"{cell.task.name}/{cell.agent.name}/{cell.model}/{cell.loop.name}x{cell.attempts}"
        for cell in run_cells(parsed, TASKS)
    ]


def test_without_more_the_product_of_everything():
    assert len(cells({"models": MODELS})) == 2 * 2 * 2
    assert cells({})[0] == "ledger/a/none/outer-loopx1"


def test_exclude_needs_every_field_to_match():
    found = cells({"models": MODELS, "exclude": [{"task": "led*", "agent": "a"}]})
    assert found == [
        "ledger/b/small/outer-loopx1",
        "ledger/b/large/outer-loopx1",
        "parser/a/small/outer-loopx1",
        "parser/a/large/outer-loopx1",
        "parser/b/small/outer-loopx1",
        "parser/b/large/outer-loopx1",
    ]


def test_include_adds_back_what_exclude_took_and_may_raise_attempts():
    found = cells(
        {
            "exclude": [{"agent": "b"}],
            "include": [{"task": "parser", "agent": "b", "attempts": 3}],
        }
    )
    assert found == [
        "ledger/a/none/outer-loopx1",
        "parser/a/none/outer-loopx1",
        "parser/b/none/outer-loopx3",
    ]


def test_explicit_cells_replace_the_product():
    found = cells(
        {
            "models": MODELS,
            "cells": [{"agent": "a", "model": "small"}, {"agent": "b", "tasks": ["parser"]}],
        }
    )
    assert found == [
        "ledger/a/small/outer-loopx1",
        "parser/a/small/outer-loopx1",
        "parser/b/small/outer-loopx1",
        "parser/b/large/outer-loopx1",
    ]


@pytest.mark.parametrize(
    ("by_task", "expected"),
    [([], (2, 2)), ([("parser", 5)], (2, 5)), ([("*", 3), ("parser", 1)], (3, 3))],
    ids=[
        "spec.attempts counts for all",
        "a task may have more",
        "the largest number counts, in whatever order",
    ],
)
def test_attempts(by_task: list[tuple[str, int]], expected: tuple[int, int]):
    listed = [{"task": task, "attempts": attempts} for task, attempts in by_task]
    found = cells({"exclude": [{"agent": "b"}]}, attempts=2, attemptsByTask=listed)
    assert found == [
        f"ledger/a/none/outer-loopx{expected[0]}",
        f"parser/a/none/outer-loopx{expected[1]}",
    ]
