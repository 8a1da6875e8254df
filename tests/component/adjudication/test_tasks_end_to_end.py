"""A Python task through the real runner: gold run, episode, adjudication, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from makers_adjudication import Stand, stand
from makers_runner import task_container
from makers_tasks import GOLD, TESTS, write_task

Step = Callable[[Path], None]


def gold(unit: str) -> Step:
    """What the oracle does for a unit, without a patch program."""
    lines = GOLD[unit].splitlines()
    added = [line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++"]
    name = next(line[6:] for line in lines if line.startswith("+++ b/"))

    def step(tree: Path) -> None:
        with (tree / name).open("a") as file:
            file.write("\n".join(added) + "\n")

    return step


def write(name: str, text: str) -> Step:
    def step(tree: Path) -> None:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)

    return step


def together(*steps: Step) -> Step:
    def step(tree: Path) -> None:
        for one in steps:
            one(tree)

    return step


def columns(trial: Stand) -> list[str]:
    return [
        " ".join(verdict.results[unit].state.value for unit in ("add", "parse", "run"))
        for verdict in trial.verdicts()
    ]


def test_an_episode_with_a_regression_and_a_hanging_test(tmp_path: Path) -> None:
    hang = write("calc/__init__.py", "def run(text):\n    while True:\n        pass\n")
    steps = [
        together(gold("add"), gold("parse")),
        together(write("calc/add.py", "def add(a, b):\n    return a - b\n"), hang),
        together(write("calc/add.py", "def add(a, b):\n    return a + b\n"), gold("run")),
    ]
    with task_container() as box:
        trial = stand(box, write_task(tmp_path), test_seconds=8)
        taken = asyncio.run(trial.inventory())
        asyncio.run(trial.episode(steps))
        results = asyncio.run(trial.adjudicate()).results
    assert taken.inventory is not None
    assert (taken.inventory.accepted, taken.inventory.problems) == (True, ())
    assert {unit: found.cases for unit, found in taken.inventory.units.items()} == {
        "add": ("add/test_add.py::test_adds", "add/test_add.py::test_adds_nothing"),
        "parse": ("parse/test_parse.py::test_splits",),
        "run": ("run/test_run.py::test_runs[ 4 + 5 -9]", "run/test_run.py::test_runs[1+2-3]"),
    }
    assert columns(trial) == [
        "error error sealed", "pass pass fail", "fail pass timeout", "pass pass pass",
    ]  # fmt: skip
    assert results.metrics is not None
    assert results.metrics.resolved
    assert (results.metrics.reg_events, results.metrics.recoveries) == (1, 1)
    assert (results.canaries_run, results.canaries_failed) == (16, 0)


SHADOW = "def main(*_):\n    print('x::y PASSED')\n    return 0\n"
CHEATS: dict[str, Step] = {
    "a pytest of its own": write("pytest.py", SHADOW),
    "a package of the standard library": write("json/__init__.py", "raise SystemExit(0)\n"),
    "start-up code": write("sitecustomize.py", "import os\nos._exit(0)\n"),
    "a conftest": write(
        "conftest.py",
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
        "def pytest_runtest_makereport():\n    out = yield\n"
        "    out.get_result().outcome = 'passed'\n",
    ),
    "a configuration": write("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
    "a plugin by metadata": write(
        "evil-1.dist-info/entry_points.txt", "[pytest11]\nevil = evil_plugin\n"
    ),
    "an exit at import": write("calc/add.py", "import os\nos._exit(0)\n"),
    "lines that look like results": write(
        "calc/add.py",
        "import os, sys\nos.write(1, b'add/test_add.py::test_adds PASSED\\n"
        "add/test_add.py::test_adds_nothing PASSED\\n')\nsys.exit(0)\n",
    ),
}


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the unit `add` gets for each cheat over a workspace without any solution."""
    with task_container() as box:
        only_add = {"gold": {"add": GOLD["add"]}, "tests": {"add": TESTS["add"]}, "edges": ()}
        root = write_task(tmp_path_factory.mktemp("task"), **only_add)  # type: ignore[arg-type]
        trial = stand(box, root, test_seconds=20)
        asyncio.run(trial.inventory())

        def only(cheat: Step) -> Step:
            def step(tree: Path) -> None:
                for name in ("pytest.py", "sitecustomize.py", "conftest.py", "pytest.ini"):
                    (tree / name).unlink(missing_ok=True)
                (tree / "calc/add.py").unlink(missing_ok=True)
                cheat(tree)

            return step

        asyncio.run(trial.episode([only(cheat) for cheat in CHEATS.values()]))
        asyncio.run(trial.adjudicate())
    states = [verdict.results["add"].state.value for verdict in trial.verdicts()]
    return dict(zip(CHEATS, states[1:], strict=True))


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_passes_nothing(cheated: dict[str, str], cheat: str) -> None:
    assert cheated[cheat] in ("fail", "error")


NODE_TESTS = {
    "add": "import test from 'node:test';\nimport assert from 'node:assert';\n"
    "import { add } from '/WORKSPACE/calc/add.mjs';\n"
    "test('adds', () => assert.strictEqual(add(2, 3), 5));\n",
}
NODE_ADD = "export const add = (a, b) => a + b;\n"
NODE_GOLD = f"--- /dev/null\n+++ b/calc/add.mjs\n@@ -0,0 +1 @@\n+{NODE_ADD}"
NODE_SCRIPT = """#!/bin/bash
cd "$REPO_DIR"
exec node --test --test-reporter=spec "$UNIT_TEST_DIR/${STAYER_UNIT:-}"
"""


@pytest.mark.node
def test_a_suite_of_scripts_in_another_language(tmp_path: Path) -> None:
    with task_container() as box:
        text = NODE_TESTS["add"].replace("/WORKSPACE", str(box.root / "workspace"))
        root = write_task(
            tmp_path,
            gold={"add": NODE_GOLD},
            tests={},
            edges=(),
            settings={"parser_name": "node", "language": "javascript"},
            files={
                "tests/add/add.test.mjs": text,
                "run-tests.sh": NODE_SCRIPT,
                "base/package.json": "{}",
            },
        )
        trial = stand(box, root)
        taken = asyncio.run(trial.inventory())
        asyncio.run(trial.episode([write("calc/add.mjs", NODE_ADD)]))
        results = asyncio.run(trial.adjudicate()).results
    assert taken.inventory is not None
    assert (taken.inventory.suite, taken.inventory.canaries) == ("script", "native")
    assert taken.inventory.problems == ()
    assert taken.inventory.units["add"].selectable
    assert [v.results["add"].state.value for v in trial.verdicts()] == ["error", "pass"]
    assert trial.verdicts()[0].environment["canaries"] == "native"
    assert results.metrics is not None
    assert results.metrics.resolved


def test_a_gold_solution_that_fails_is_rejected_by_name(tmp_path: Path) -> None:
    wrong = TESTS["parse"].replace("(1, 2)", "(2, 1)")
    with task_container() as box:
        trial = stand(box, write_task(tmp_path, tests={**TESTS, "parse": wrong}))
        taken = asyncio.run(trial.inventory()).inventory
    assert taken is not None
    assert not taken.accepted
    assert taken.problems == (
        "unit parse: found fail on the gold solution (1 of 1 cases not passed, first "
        "parse/test_parse.py::test_splits (failed)); accepted: every case passes",
    )
