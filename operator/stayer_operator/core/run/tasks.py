"""The tasks of a run: from a source's records, or as they were fixed at its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import ValidationError

from stayer_evaluator.records.run import RunTask, RunTasks
from stayer_evaluator.records.task import TaskRecord
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.globs import is_selected, matches
from stayer_operator.core.run.problems import Problem, schema_problems, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """The tasks that a run selects. `problems` are of the records, not of the run's spec."""

    tasks: tuple[RunTask, ...] = ()
    problems: tuple[Problem, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Their names, sorted."""
        return tuple(task.name for task in self.tasks)


def select_tasks(files: Mapping[str, bytes], spec: RunSpec) -> TaskList:
    """Read the records that the spec's globs select; the others may hold anything."""
    tasks: list[RunTask] = []
    problems: list[Problem] = []
    for name in sorted(files):
        if not is_selected(name, spec.tasks.include, spec.tasks.exclude):
            continue
        record = _read(name, files[name])
        if isinstance(record, TaskRecord):
            tasks.append(RunTask.of(record))
        else:
            problems.extend(record)
    return TaskList(tasks=tuple(tasks), problems=tuple(problems))


def _read(name: str, data: bytes) -> TaskRecord | tuple[Problem, ...]:
    try:
        record = TaskRecord.from_bytes(data)
    except ValidationError as error:
        return schema_problems(f"{name}.json", error)
    if record.name != name:
        return (Problem(field=f"{name}.json.name", found=shown(record.name), accepted=name),)
    return record


@lru_cache(maxsize=32)
def read_pinned(data: bytes) -> TaskList:
    """The list that the run was started with; kept, since a run is planned many times."""
    try:
        return TaskList(tasks=RunTasks.from_bytes(data).tasks)
    except ValidationError as error:
        return TaskList(problems=schema_problems("tasks.json", error))


def unmatched_task_globs(files: Mapping[str, bytes], spec: RunSpec) -> tuple[Problem, ...]:
    """Globs of spec.tasks that match no task of the source: mostly a typing mistake."""
    lists = {"include": spec.tasks.include, "exclude": spec.tasks.exclude}
    return tuple(
        Problem(
            field=f"spec.tasks.{name}[{index}]",
            found=f"{shown(glob)}, which matches no task",
            accepted=f"a glob that matches one of: {known_tasks(files)}",
        )
        for name, globs in lists.items()
        for index, glob in enumerate(globs)
        if not any(matches(task, (glob,)) for task in files)
    )


def known_tasks(names: Mapping[str, object] | tuple[str, ...]) -> str:
    """The first names of a task set, for a message."""
    listed = sorted(names)
    more = f", ... ({len(listed)} in all)" if len(listed) > 12 else ""
    return ", ".join(listed[:12]) + more if listed else "an empty task set"
