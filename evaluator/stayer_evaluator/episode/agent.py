"""Turns a trial's agent into what each round does. The only place that knows both kinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stayer_evaluator.episode import drive_command, drive_steps
from stayer_evaluator.episode.bench import Bench
from stayer_evaluator.episode.config import TaskSide
from stayer_evaluator.episode.gold import Gold
from stayer_evaluator.episode.opening import Opening, fetch_gold
from stayer_evaluator.episode.outcome import RoundEnd
from stayer_evaluator.episode.sampler import Sampler
from stayer_evaluator.episode.steps import ApplyDiff, BadScript, Script, Step, parse_script
from stayer_evaluator.harnesses.describe import CommandHarness, Harness, StepsHarness
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.storage.store import AccessDenied, ObjectMissing, ObjectStore

Catalog = Mapping[str, Harness]
"""Harnesses by name."""


class CannotStart(Exception):  # noqa: N818 (reads as what happened)
    """The agent cannot be started at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is ready to work."""

    harness: Harness
    script: Script
    gold: Gold
    env: dict[str, str]
    model: str

    @property
    def max_rounds(self) -> int | None:
        return self.harness.max_rounds


@dataclass(frozen=True, slots=True)
class Launched:
    """What one launch gave."""

    end: RoundEnd
    steps: list[dict[str, Any]]
    output: bytes
    compactions: int | None = None


async def prepare_agent(
    store: ObjectStore, opening: Opening, side: TaskSide, catalog: Catalog
) -> Agent:
    """Look up the harness, read the script, fetch gold where it is granted.

    Raises CannotStart, BadTrial, StoreError.
    """
    settings = opening.agent
    harness = catalog.get(settings.harness)
    if harness is None:
        known = ", ".join(catalog)
        raise CannotStart(f"unknown harness {settings.harness!r}; accepted are {known}")
    script = _script(harness, settings.script)
    gold = Gold({})
    if harness.gold == "always" or script.units:
        gold = await _gold(store, opening.task)
    if isinstance(harness, StepsHarness) and harness.steps == "gold":
        script = oracle_script(gold, opening.task)
    _check_units(script, opening.task)
    env = _environment(side, opening.document.test_visibility == "attached", settings.env)
    return Agent(harness, script, gold, env, opening.document.model or "")


def _script(harness: Harness, text: str | None) -> Script:
    if harness.script == "refused":
        return Script({})
    try:
        return parse_script(text or "")
    except BadScript as error:
        raise CannotStart(f"script: {error}") from error


async def _gold(store: ObjectStore, task: TaskRecord) -> Gold:
    try:
        return await fetch_gold(store, task)
    except ObjectMissing:
        return Gold({})
    except AccessDenied as error:
        raise CannotStart(f"the gold patches are needed and not granted: {error}") from error


def oracle_script(gold: Gold, task: TaskRecord) -> Script:
    """Gold in reference order as a script of one round."""
    steps: list[Step] = []
    for part in gold.sequence(task):
        if part.label in gold.units:
            steps.append(ApplyDiff(unit=part.label))
        else:
            steps.append(ApplyDiff(diff=part.diff.decode("utf-8"), patch_of=part.patch_of))
    return Script({1: tuple(steps)})


def _check_units(script: Script, task: TaskRecord) -> None:
    known = {unit.id for unit in task.units}
    unknown = [unit for unit in script.units if unit not in known]
    if unknown:
        raise CannotStart(f"script: unknown units {unknown}; the task has {sorted(known)}")


def _environment(side: TaskSide, suite: bool, extra: dict[str, str]) -> dict[str, str]:
    """Over the image's own variables, which jobs inherit."""
    env = {"HOME": side.home, "USER": "agent", "LOGNAME": "agent", "PWD": side.workspace}
    if suite:
        env["TEST_DIR"] = side.suite
    return {**env, **extra}


async def launch(
    agent: Agent, bench: Bench, sampler: Sampler, number: int, limit: float, prompt: str
) -> Launched:
    """Start the harness once and see it to its end. Raises Drained, Fenced, StoreError."""
    if isinstance(agent.harness, CommandHarness):
        start = drive_command.Launch(agent.harness, prompt, agent.model, agent.env)
        done = await drive_command.drive_command(bench, start, limit)
        return Launched(done.end, [], done.output, done.compactions)
    log: list[dict[str, Any]] = []
    work = drive_steps.StepEnv(bench, sampler, agent.gold, agent.env, log)
    end = await drive_steps.drive_steps(work, agent.script.steps(number), limit)
    return Launched(end, log, drive_steps.transcript(log))
