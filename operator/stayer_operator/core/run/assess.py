"""A view of a run, understood: its spec, its tasks, its cells, and everything wrong with them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.run import RunTask, RunTasks
from stayer_operator.api.conditions import Reason
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.cells import AttemptKey, Cell, run_cells
from stayer_operator.core.run.identity import RunIdentity
from stayer_operator.core.run.pins import changed_fields, lost_attempts, pins
from stayer_operator.core.run.problems import Problem, summary
from stayer_operator.core.run.same import Same
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.spec import name_problems, parse_spec
from stayer_operator.core.run.tasks import (
    TaskList,
    read_pinned,
    select_tasks,
    unmatched_task_globs,
)
from stayer_operator.core.run.validate import script_texts, spec_problems, task_problems
from stayer_operator.core.run.view import FoundTasks, PinnedTasks, RunView, TrialSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksFault:
    """Why there is no task list, for the condition TasksReady."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """`problems` are the spec's (condition Accepted); `tasks_fault` is the task set's. `to_pin` is
    the task list to be stored before anything is created; `pinned` what the status shall hold.
    """

    run: RunIdentity
    spec: RunSpec | None = None
    problems: tuple[Problem, ...] = ()
    immutable: bool = False  # the problems are changes of what must not change
    unenforceable: bool = False  # the only problem: no pod here could be what the spec demands
    tasks: tuple[RunTask, ...] = ()
    tasks_fault: TasksFault | None = None
    to_pin: bytes | None = None
    scripts: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()
    pinned: Mapping[str, str] = field(default_factory=dict)
    tasks_are_pinned: bool = False

    @property
    def is_sound(self) -> bool:
        """Spec and tasks are known and right."""
        return self.spec is not None and not self.problems and self.tasks_fault is None


def assess(view: RunView) -> Assessment:
    """Understand a run. Never raises for anything that a person can write into a manifest."""
    run = RunIdentity.of(view.manifest)
    spec = parse_spec(view.manifest)
    if not isinstance(spec, RunSpec):
        return Assessment(run=run, problems=(*name_problems(run.name), *spec))
    reading = _read(Same(spec), Same(view.settings), tuple(sorted(view.scripts.items())))
    problems = (*name_problems(run.name), *reading.problems)
    lacking = () if problems else tuple(_lacking(spec, view))
    base = Assessment(
        run=run,
        spec=spec,
        problems=problems or lacking,
        unenforceable=bool(lacking),
        scripts=reading.scripts,
    )
    return _with_tasks(base, spec, view)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What follows from spec, installation and ConfigMaps alone."""

    problems: tuple[Problem, ...]
    scripts: Mapping[str, str]


@lru_cache(maxsize=32)
def _read(
    spec: Same[RunSpec],
    settings: Same[RunSettings],
    scripts: tuple[tuple[tuple[str, str], str | None], ...],
) -> _Reading:
    """Kept, since a run is planned many times, as is all that follows from what never changes."""
    texts = dict(scripts)
    return _Reading(
        problems=spec_problems(spec.it, settings.it.harnesses, texts),
        scripts=script_texts(spec.it, texts),
    )


def _lacking(spec: RunSpec, view: RunView) -> Iterator[Problem]:
    """What the spec demands and the nodes do not have. A run that has trials already goes on: what
    its pods find is its result, and what has ended stays as it was.
    """
    why = view.settings.no_user_namespaces
    if spec.user_namespaces == "required" and why and not view.trials:
        yield Problem(
            field="spec.userNamespaces",
            found='"required" (the default)',
            accepted=f"preferred or off, since trial pods get no user namespaces here ({why})",
        )


def _with_tasks(base: Assessment, spec: RunSpec, view: RunView) -> Assessment:
    match view.tasks:
        case PinnedTasks(data=data):
            return _pinned(base, spec, view, data)
        case FoundTasks(files=files):
            return _found(base, spec, files)
        case trouble:
            return replace(
                base, tasks_fault=TasksFault(reason=trouble.reason, message=trouble.message)
            )


def _found(base: Assessment, spec: RunSpec, files: Mapping[str, bytes]) -> Assessment:
    """The source was read. The list is stored once nothing is wrong with it or with the spec."""
    if base.problems:
        return base
    listed = select_tasks(files, spec)
    unmatched = unmatched_task_globs(files, spec)
    if listed.problems:
        return replace(base, problems=unmatched, tasks_fault=_invalid(listed))
    problems = unmatched or task_problems(spec, listed.tasks, base.scripts)
    if problems:
        return replace(base, problems=problems, tasks=listed.tasks)
    data = RunTasks(tasks=listed.tasks).to_bytes()
    cells = run_cells(spec, listed.tasks)
    return replace(base, tasks=listed.tasks, cells=cells, to_pin=data)


def _pinned(base: Assessment, spec: RunSpec, view: RunView, data: bytes) -> Assessment:
    listed = read_pinned(data)
    if listed.problems:
        return replace(base, tasks_fault=_invalid(listed))
    known = replace(base, tasks=listed.tasks, tasks_are_pinned=True)
    if base.problems:
        return known
    layout = _lay_out(Same(spec), data, tuple(base.scripts.items()))
    changed = changed_fields(_old_pins(view), layout.pins)
    changes = (*changed, *_lost(view.trials, layout.cells))
    return replace(
        known,
        problems=changes or layout.problems,
        immutable=bool(changes),
        cells=layout.cells,
        pinned=layout.pins,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What follows from a sound spec, the scripts of its agents and its task list alone."""

    cells: tuple[Cell, ...]
    pins: Mapping[str, str]
    problems: tuple[Problem, ...]


@lru_cache(maxsize=32)
def _lay_out(
    spec: Same[RunSpec], task_list: bytes, scripts: tuple[tuple[str, str], ...]
) -> _Layout:
    tasks, texts = read_pinned(task_list).tasks, dict(scripts)
    return _Layout(
        cells=run_cells(spec.it, tasks),
        pins=pins(spec.it, task_list, texts),
        problems=task_problems(spec.it, tasks, texts),
    )


def _invalid(listed: TaskList) -> TasksFault:
    return TasksFault(reason=Reason.TASK_SET_INVALID, message=summary(listed.problems))


def _old_pins(view: RunView) -> Mapping[str, str]:
    status: Mapping[str, Any] = view.manifest.get("status") or {}
    return status.get("pinned") or {}


def _lost(trials: tuple[TrialSummary, ...], cells: tuple[Cell, ...]) -> tuple[Problem, ...]:
    asked, kind = {cell.coordinates: cell.attempts for cell in cells}, TrialKind.ATTEMPT
    if all(t.kind is not kind or 1 <= t.attempt <= asked.get(t.cell, 0) for t in trials):
        return ()
    planned = frozenset(key for cell in cells for key in cell.keys())  # noqa: SIM118 (no mapping)
    existing = [attempt_key(trial) for trial in trials if trial.kind is TrialKind.ATTEMPT]
    return lost_attempts(existing, planned)


def attempt_key(trial: TrialSummary) -> AttemptKey:
    """Coordinates of a Trial of kind attempt."""
    return AttemptKey(trial.task, trial.agent, trial.model, trial.loop, trial.attempt)
