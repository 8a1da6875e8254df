"""Documents of a whole run: the tasks it was started with, and the index of its results."""

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


class RunTrial(Record):
    """One scheduled trial of a run."""

    task: str
    task_digest: str
    agent: str
    model: str
    loop: str
    attempt: int
    generation: int
    trial: str
    phase: str = Field(description="Missing when the Trial was never created")
    resolved: bool | None = None
    failure_mode: str = ""
    regressions: int = 0
    results: str = Field(default="", description="key of results.json; empty when there is none")


class RunResults(Record):
    """`runs/<namespace>/<run>-<uid8>/results.json`: which trials make up the run. Scores are
    computed from the trials' own results; a scheduled trial without one counts as not resolved.
    """

    schema_version: Literal["stayer.dev/run-results/v1"] = "stayer.dev/run-results/v1"
    namespace: str
    run: str
    run_uid: str
    benchmark: str
    phase: str
    test_visibility: str
    network: str
    trials: tuple[RunTrial, ...]
