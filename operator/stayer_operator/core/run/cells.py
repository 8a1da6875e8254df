"""spec.matrix and spec.attempts -> the attempts of a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from stayer_evaluator.records.run import RunTask
from stayer_operator.api.matrix import Agent, ExcludedCells, LoopProfileSpec, Matrix
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.globs import matches

Coordinates = tuple[str, str, str, str]  # of a cell: task, agent, model, loop


@lru_cache(maxsize=256)
def coordinates(task: str, agent: str, model: str, loop: str) -> Coordinates:
    """One tuple for the many Trials of a cell, each of which keeps it."""
    return task, agent, model, loop


class AttemptKey(NamedTuple):
    """Coordinates of one attempt within a run, for what is sorted or said."""

    task: str
    agent: str
    model: str
    loop: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One agent with one model in one loop profile on one task, to be done `attempts` times."""

    task: RunTask
    agent: Agent
    model: str
    loop: LoopProfileSpec
    attempts: int

    @property
    def coordinates(self) -> Coordinates:
        """What tells it from the other cells of the run."""
        return self.task.name, self.agent.name, self.model, self.loop.name

    def keys(self) -> tuple[AttemptKey, ...]:
        """Its attempts, counted from 1."""
        return tuple(
            AttemptKey(*self.coordinates, attempt) for attempt in range(1, self.attempts + 1)
        )


def run_cells(spec: RunSpec, tasks: Sequence[RunTask]) -> tuple[Cell, ...]:
    """All cells of a run, ordered by task, agent, model and loop as they are declared. References
    to entries that do not exist give no cells (validate.py reports them).
    """
    chosen = _explicit(spec.matrix, tasks) if spec.matrix.cells else _product(spec.matrix, tasks)
    return tuple(
        Cell(
            task=task,
            agent=agent,
            model=model.name,
            loop=loop,
            attempts=max(chosen[key], attempts_of(spec, task.name)),
        )
        for task in tasks
        for agent in spec.matrix.agents
        for model in spec.matrix.models
        for loop in spec.matrix.loop_profiles
        if (key := (task.name, agent.name, model.name, loop.name)) in chosen
    )


def attempts_of(spec: RunSpec, task: str) -> int:
    """Attempts of a task's cells: the largest number that applies."""
    special = (entry.attempts for entry in spec.attempts_by_task if matches(task, (entry.task,)))
    return max(spec.attempts, *special, 1)


def _product(matrix: Matrix, tasks: Sequence[RunTask]) -> dict[Coordinates, int]:
    """Coordinates -> attempts asked for by `include` (1 without)."""
    names = tuple(task.name for task in tasks)
    chosen = {
        key: 1
        for key in _combine(matrix, names, None, None, None)
        if not any(excludes(entry, key) for entry in matrix.exclude)
    }
    for entry in matrix.include:
        selected = [name for name in names if matches(name, (entry.task,))]
        for key in _combine(matrix, selected, entry.agent, entry.model, entry.loop_profile):
            chosen[key] = max(chosen.get(key, 1), entry.attempts or 1)
    return chosen


def _explicit(matrix: Matrix, tasks: Sequence[RunTask]) -> dict[Coordinates, int]:
    chosen: dict[Coordinates, int] = {}
    for entry in matrix.cells:
        selected = [task.name for task in tasks if matches(task.name, entry.tasks)]
        keys = _combine(matrix, selected, entry.agent, entry.model, entry.loop_profile)
        chosen.update(dict.fromkeys(keys, 1))
    return chosen


def _combine(
    matrix: Matrix, tasks: Iterable[str], agent: str | None, model: str | None, loop: str | None
) -> list[Coordinates]:
    """The product, narrowed to the names that are given."""
    return [
        (task, one_agent.name, one_model.name, one_loop.name)
        for task in tasks
        for one_agent in matrix.agents
        for one_model in matrix.models
        for one_loop in matrix.loop_profiles
        if agent in (None, one_agent.name)
        and model in (None, one_model.name)
        and loop in (None, one_loop.name)
    ]


def excludes(entry: ExcludedCells, key: Coordinates) -> bool:
    """Whether an exclude entry takes the cell out: every field that is set must match."""
    task, agent, model, loop = key
    return (
        (entry.task is None or matches(task, (entry.task,)))
        and entry.agent in (None, agent)
        and entry.model in (None, model)
        and entry.loop_profile in (None, loop)
    )
