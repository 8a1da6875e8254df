"""Which trials a run has, which it lacks, and how its cells stand."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.run import RunTask
from stayer_operator.api.conditions import (
    ACTIVE_TRIAL_PHASES,
    TERMINAL_TRIAL_PHASES,
    TrialPhase,
)
from stayer_operator.api.run import Rerun
from stayer_operator.core.run.assess import Assessment
from stayer_operator.core.run.cells import Cell, Coordinates
from stayer_operator.core.run.view import InventoryView, RunView, TrialSummary

_phase = attrgetter("phase")
_Newest = Mapping[Coordinates, Mapping[int, TrialSummary]]  # by cell and attempt


class MissingAttempt(NamedTuple):
    """An attempt without a Trial, or with one that is to be run again. A tuple: while a run starts
    each plan makes thousands.
    """

    cell: Cell
    attempt: int
    generation: int
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventories:
    """How the inventories of a run's tasks stand. `missing`: task and generation to be created."""

    accepted: frozenset[str] = frozenset()
    rejected: tuple[tuple[str, tuple[str, ...]], ...] = ()  # task, problems
    failed: tuple[tuple[str, str], ...] = ()  # task, message
    pending: tuple[str, ...] = ()
    unseen: bool = False  # a trial succeeded and its inventory was not read yet
    missing: tuple[tuple[RunTask, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """`current` holds the newest Trial of every attempt that has one."""

    planned: int
    current: tuple[TrialSummary, ...]
    missing: tuple[MissingAttempt, ...]
    inventories: Inventories
    phases: Mapping[TrialPhase, int]  # of `current`
    has_active: bool  # any Trial of the run, inventories and superseded ones too
    has_unfinished: bool  # likewise, waiting ones too


def take_census(view: RunView, assessment: Assessment) -> Census:
    """Compare what the run asks for with the Trials that exist."""
    newest = _newest(view.trials)
    current = tuple(trial for of_cell in newest.values() for trial in of_cell.values())
    phases = frozenset(map(_phase, view.trials))
    rerun = assessment.spec.rerun if assessment.spec is not None else Rerun()
    missing = tuple(_missing(assessment.cells, newest, rerun))
    planned = sum(cell.attempts for cell in assessment.cells)
    return Census(
        planned=planned or len(current),
        current=current,
        missing=missing,
        inventories=_inventories(view, assessment, rerun),
        phases=Counter(map(_phase, current)),
        has_active=not phases.isdisjoint(ACTIVE_TRIAL_PHASES),
        has_unfinished=not phases <= TERMINAL_TRIAL_PHASES,
    )


def outcomes(trial: TrialSummary) -> frozenset[str]:
    """What `spec.rerun.which` may name of an ended trial; empty while it goes on."""
    if trial.phase is TrialPhase.FAILED:
        return frozenset({"infra_error"})
    if trial.phase is TrialPhase.CANCELLED:
        return frozenset({"cancelled"})
    if trial.phase is not TrialPhase.SUCCEEDED:
        return frozenset()
    failed = {"failed"} if trial.failure_mode not in ("", "none") else set()
    return frozenset(failed | ({"unresolved"} if trial.resolved is False else set()))


def _newest(trials: Iterable[TrialSummary]) -> _Newest:
    newest: dict[Coordinates, dict[int, TrialSummary]] = {}
    kind = TrialKind.ATTEMPT
    for trial in trials:
        if trial.kind is kind:
            of_cell = newest.setdefault(trial.cell, {})
            rival = of_cell.setdefault(trial.attempt, trial)
            if rival is not trial and _age(trial) >= _age(rival):
                of_cell[trial.attempt] = trial
    return newest


def _age(trial: TrialSummary) -> tuple[int, int, str]:
    return trial.generation, trial.restarts, trial.name


def _missing(cells: Iterable[Cell], newest: _Newest, rerun: Rerun) -> Iterable[MissingAttempt]:
    for cell in cells:
        of_cell = newest.get(cell.coordinates, {})
        for attempt in range(1, cell.attempts + 1):
            trial = of_cell.get(attempt)
            if trial is None:
                yield MissingAttempt(cell=cell, attempt=attempt, generation=0)
            elif _runs_again(trial, rerun):
                yield MissingAttempt(cell=cell, attempt=attempt, generation=rerun.generation)
            elif trial.begins_again:
                yield MissingAttempt(
                    cell=cell,
                    attempt=attempt,
                    generation=trial.generation,
                    restarts=trial.restarts + 1,
                )


def _runs_again(trial: TrialSummary, rerun: Rerun) -> bool:
    """Once per generation: its new Trial carries the generation, and that is not below it."""
    return trial.generation < rerun.generation and not outcomes(trial).isdisjoint(rerun.which)


def _inventories(view: RunView, assessment: Assessment, rerun: Rerun) -> Inventories:
    tasks = {cell.task.digest: cell.task for cell in assessment.cells}
    known = {digest: view.inventories[digest] for digest in tasks if digest in view.inventories}
    open_tasks = [task for digest, task in tasks.items() if digest not in known]
    newest = _newest_inventories(view.trials) if open_tasks else {}
    waiting = [(task, newest[task.digest]) for task in open_tasks if task.digest in newest]
    again = [(task, trial) for task, trial in waiting if _runs_again(trial, rerun)]
    first = [(task, 0) for task in open_tasks if task.digest not in newest]
    return Inventories(
        accepted=frozenset(digest for digest, found in known.items() if found.accepted),
        rejected=_rejected(tasks, known),
        failed=tuple(
            (task.name, trial.message)
            for task, trial in waiting
            if trial.phase in (TrialPhase.FAILED, TrialPhase.CANCELLED)
            and not _runs_again(trial, rerun)
        ),
        pending=tuple(task.name for task in open_tasks),
        unseen=any(trial.phase is TrialPhase.SUCCEEDED for _, trial in waiting),
        missing=(*first, *((task, rerun.generation) for task, _ in again)),
    )


def _newest_inventories(trials: Iterable[TrialSummary]) -> Mapping[str, TrialSummary]:
    inventories = sorted(
        (trial for trial in trials if trial.kind is TrialKind.INVENTORY),
        key=lambda trial: (trial.generation, trial.name),
    )
    return {trial.task_digest: trial for trial in inventories}


def _rejected(
    tasks: Mapping[str, RunTask], known: Mapping[str, InventoryView]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (tasks[digest].name, found.problems)
        for digest, found in known.items()
        if not found.accepted
    )
