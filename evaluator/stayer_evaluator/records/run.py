"""`tasks.json` of a run: the tasks that it was started with."""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.task import TaskRecord


class RunTask(Record):
    """What a run keeps of a task; the rest lies under `tasks/<digest>/task.json`."""

    name: str
    digest: str
    image: str
    units: tuple[str, ...]
    max_agent_timeout_sec: float
    max_test_timeout_sec: float
    estimated_duration_sec: float | None = None

    @classmethod
    def of(cls, record: TaskRecord) -> "RunTask":
        """The part of a pushed task that trials are made from."""
        return cls(
            name=record.name,
            digest=record.digest,
            image=record.image,
            units=tuple(unit.id for unit in record.units),
            max_agent_timeout_sec=record.max_agent_timeout_sec,
            max_test_timeout_sec=record.max_test_timeout_sec,
            estimated_duration_sec=record.estimated_duration_sec,
        )


class RunTasks(Record):
    """`runs/<namespace>/<run>-<uid8>/tasks.json`: fixed at the run's start, so that a later push
    to the same task set changes nothing.
    """

    schema_version: Literal["stayer.dev/run-tasks/v1"] = "stayer.dev/run-tasks/v1"
    tasks: tuple[RunTask, ...] = Field(description="sorted by name")
