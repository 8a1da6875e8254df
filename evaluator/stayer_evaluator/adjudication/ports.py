"""The seams of the adjudicator: who runs jobs, who keeps the trace, who is told of progress."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stayer_evaluator.records import places
from stayer_evaluator.records.jobs import Job, JobResult
from stayer_evaluator.records.reports import ProgressReport
from stayer_evaluator.records.trace import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished job: what the runner says, and the head of its log."""

    result: JobResult
    log: bytes


class Jobs(Protocol):
    """The task container's runner."""

    async def run(self, job: Job, stdin: bytes | None = None) -> Done:
        """Run one job to its end; `stdin` is fed to it. The log is capped.

        Raises `episode.jobs.RunnerLost` when the runner answers no more.
        """


class Trace(Protocol):
    """The adjudicator's own series of trace events."""

    def add(self, type_: EventType, snapshot: int | None = None, **data: Any) -> None:
        """Note an event; it becomes durable with the next `flush`."""

    async def flush(self) -> None:
        """Make what was noted durable as one segment."""


class Progress(Protocol):
    """Whoever shows progress; nothing depends on it."""

    def report(self, report: ProgressReport) -> None:
        """Send, some time; failures are nobody's trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Folders as the sidecar sees them, beside the task container's names for them."""

    workspace: Path = Path(places.WORKSPACE)
    suite: Path = Path(places.SUITE)
    home: Path = Path(places.HOME)
    packs: Path = Path(places.STATE) / "packs"
    inside: Mapping[str, str] | None = None
    wiped: tuple[str, ...] = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 (there)

    def within(self, name: str) -> str:
        """The task container's path of `workspace`, `suite` or `home`."""
        own = {"workspace": self.workspace, "suite": self.suite, "home": self.home}[name]
        return (self.inside or {}).get(name, str(own))
