"""A Python task through the real runner: gold run, episode, adjudication, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from makers_adjudication import Stand, stand
from makers_runner import task_container
from makers_tasks import GOLD, write_task
from stayer_evaluator.records.outcomes import UnitState


def apply_gold(unit: str) -> Callable[[Path], None]:
    """What the oracle does for a unit, without a patch program."""
    added = [line[1:] for line in GOLD[unit].splitlines() if line[:1] == "+" and line[:3] != "+++"]
    name = next(line[6:] for line in GOLD[unit].splitlines() if line.startswith("+++ b/"))

    def step(tree: Path) -> None:
        with (tree / name).open("a") as file:
            file.write("\n".join(added) + "\n")
        patches = tree / "requirement_patches"
        patches.mkdir(exist_ok=True)
        (patches / f"{unit}.diff").write_text(GOLD[unit])

    return step


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda tree: (tree / name).write_text(text) and None


def states(trial: Stand) -> list[dict[str, str]]:
    return [{u: r.state.value for u, r in v.results.items()} for v in trial.verdicts()]


def test_the_gold_solution_is_accepted_and_resolves(tmp_path: Path) -> None:
    with task_container() as box:
        trial = stand(box, write_task(tmp_path))
        taken = asyncio.run(trial.inventory())
        assert taken.inventory is not None
        assert taken.inventory.problems == ()
        assert taken.inventory.suite == "pytest"
        asyncio.run(trial.episode([apply_gold("add"), apply_gold("parse"), apply_gold("run")]))
        outcome = asyncio.run(trial.adjudicate())
    assert outcome.results.metrics is not None
    assert outcome.results.metrics.resolved
    assert states(trial)[0] == {"add": "fail", "parse": "fail", "run": "sealed"} or states(trial)[
        0
    ] == {"add": "error", "parse": "error", "run": "sealed"}
    assert states(trial)[-1] == dict.fromkeys(("add", "parse", "run"), UnitState.PASS)
