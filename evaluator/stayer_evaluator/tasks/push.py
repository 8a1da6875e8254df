"""Task directory + image → objects in the store: what `stayer tasks push` writes."""

from dataclasses import dataclass
from pathlib import Path

from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.storage.layout import TaskKeys, taskset_entry
from stayer_evaluator.storage.store import MutableStore
from stayer_evaluator.tasks.bundle import PARTS, pack_part
from stayer_evaluator.tasks.model import Task
from stayer_evaluator.tasks.problems import InvalidTask, Problem, errors
from stayer_evaluator.tasks.record import task_record
from stayer_evaluator.tasks.validate import check_task


@dataclass(frozen=True, slots=True, kw_only=True)
class PushPlan:
    """What a push will write: immutable objects first, the task set's entry last."""

    record: TaskRecord
    objects: tuple[tuple[str, bytes], ...]
    entry: str
    warnings: tuple[Problem, ...] = ()


def plan_push(root: Path, image: str, taskset: str) -> PushPlan:
    """Everything that pushing the directory would write.

    Args:
        root: the task directory.
        image: reference of the built task image, with digest.
        taskset: key prefix of the task set, as in `BenchmarkRun.spec.tasks.source.s3.prefix`.

    Raises:
        InvalidTask: with all problems of the task, a missing image digest among them.
    """
    task, problems = check_task(root)
    if errors(problems):
        raise InvalidTask(task.name, errors(problems))
    record = _record(task, image)
    keys = TaskKeys(record.digest)
    parts = {"public": keys.public, "suite": keys.suite, "gold": keys.gold}
    objects = tuple((parts[part], pack_part(root, part)) for part in PARTS)
    return PushPlan(
        record=record,
        objects=(*objects, (keys.record, record.to_bytes())),
        entry=taskset_entry(taskset, record.name),
        warnings=problems,
    )


async def push(store: MutableStore, plan: PushPlan) -> TaskRecord:
    """Write the plan; safe to repeat, and to die in: the entry appears only when all is there."""
    for key, data in plan.objects:
        await store.create(key, data)
    await store.put(plan.entry, plan.record.to_bytes())
    return plan.record


def _record(task: Task, image: str) -> TaskRecord:
    try:
        return task_record(task, image)
    except ValueError as error:
        problem = Problem(file="image", found=repr(image), accepted="name@sha256:<64 hex digits>")
        raise InvalidTask(task.name, (problem,)) from error
