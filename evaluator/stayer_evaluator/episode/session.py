"""What a recorder leaves for itself in the pod's state directory, in case its process dies.

A recorder restarted in place finds the episode where it was, to the running job; one in a new pod
finds nothing here and goes on from the queue.
"""

from pathlib import Path

import pydantic

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.jobs import Job
from stayer_evaluator.records.queue import EpisodeCursor


class RunningJob(Record):
    """A job that was announced and whose result was not taken in yet."""

    key: str
    """Round, launch and step that it belongs to."""
    job: Job


class SessionState(Record):
    """The episode as the last process of this pod knew it."""

    cursor: EpisodeCursor
    retries: int = 0
    """Rate-limit answers in the round under way."""
    running: RunningJob | None = None


class Session:
    """Keeps the state on disk; every change is written whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "session.json"
        self._suite = directory / "suite.done"
        self.state: SessionState | None = None
        try:
            self.state = SessionState.from_bytes(self._path.read_bytes())
        except (FileNotFoundError, pydantic.ValidationError):
            return

    def save(self, state: SessionState) -> None:
        """Raises OSError."""
        partial = self._path.with_suffix(".partial")
        partial.write_bytes(state.to_bytes())
        partial.replace(self._path)
        self.state = state

    @property
    def suite_is_there(self) -> bool:
        """The visible tests were unpacked whole."""
        return self._suite.exists()

    def mark_suite(self) -> None:
        """Note that they are."""
        self._suite.touch()
