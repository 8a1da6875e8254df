"""The sidecar's half of the job protocol (records/jobs.py). Used by both sidecars."""

import asyncio
import errno
import os
import stat
import time
from pathlib import Path

import pydantic

from stayer_evaluator.records.jobs import Job, JobResult

MAX_RESULT = 64 * 1024
POLL_SECONDS = (0.01, 0.1)
"""From the first look to the later ones."""
LIVENESS_SECONDS = 2.0


class RunnerLost(Exception):  # noqa: N818 (reads as what happened)
    """The runner does not answer: its container ended, or something that it cannot end holds it."""


class JobClient:
    """Gives jobs to the runner of the task container, one at a time.

    Everything read back is a claim: opened without following links, bounded, validated.
    """

    def __init__(self, jobs: Path, out: Path, *, patience: float = 120.0) -> None:
        self._jobs = jobs
        self._out = out
        self._patience = patience
        self._fifo = jobs / "fifo"

    def prepare(self) -> None:
        """Close the job directory to the job's users and make the FIFO; harmless when done before.

        The FIFO is never replaced: the runner may have it open already.
        """
        self._jobs.chmod(0o700)
        try:
            os.mkfifo(self._fifo, 0o600)
        except FileExistsError:
            if not stat.S_ISFIFO(self._fifo.lstat().st_mode):
                raise

    async def run(
        self, job: Job, stdin: bytes | None = None, *, start_patience: float | None = None
    ) -> JobResult:
        """Run a job to its end. `start_patience`: seconds for the runner to appear at all.

        Raises RunnerLost, OSError (the job directory cannot be written).
        """
        self.write(job, stdin)
        return await self.finish(job, start_patience=start_patience)

    def write(self, job: Job, stdin: bytes | None = None) -> None:
        """Lay the job's files down; the runner does not know of them yet."""
        if stdin is not None:
            job = job.model_copy(update={"stdin": f"{job.id}.stdin"})
            _write(self._jobs / job.stdin, stdin)
        _write(self._jobs / f"{job.id}.json", job.to_bytes())

    async def finish(self, job: Job, *, start_patience: float | None = None) -> JobResult:
        """Announce a job whose files are there and wait for its result.

        May be repeated after a restart of this process: the runner takes each id once.
        """
        await self._announce(job.id, self._patience if start_patience is None else start_patience)
        limit = 0.0 if job.kind == "quit" else job.timeout_seconds
        result = await self._result(job, limit + self._patience)
        for suffix in (".json", ".stdin"):
            (self._jobs / f"{job.id}{suffix}").unlink(missing_ok=True)
        return result

    async def quit(self, id_: str, code: int = 0) -> None:
        """Tell the runner to end whatever runs and exit; no answer is awaited."""
        self.write(Job(id=id_, kind="quit", exit_code=code))
        try:
            await self._announce(id_, 1.0)
        except RunnerLost:
            return  # it is gone, as was wanted

    def log(self, id_: str, limit: int) -> bytes:
        """The first `limit` bytes of a job's output; nothing when there is none."""
        return _read(self._out / f"{id_}.log", limit) or b""

    async def _announce(self, id_: str, patience: float) -> None:
        give_up = time.monotonic() + patience
        while not self._send(f"{id_}\n".encode()):
            if time.monotonic() >= give_up:
                raise RunnerLost("no runner reads the job FIFO")
            await asyncio.sleep(0.05)

    def _send(self, line: bytes) -> bool:
        """False when nobody reads the FIFO, or when it is full."""
        try:
            fd = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return False
            raise
        try:
            return not line or os.write(fd, line) == len(line)
        except (BlockingIOError, BrokenPipeError):
            return False
        finally:
            os.close(fd)

    async def _result(self, job: Job, patience: float) -> JobResult:
        start = time.monotonic()
        checked = start
        pause, longest = POLL_SECONDS
        while True:
            data = _read(self._out / f"{job.id}.json", MAX_RESULT)
            if data is not None:
                return _parse(job, data)
            now = time.monotonic()
            if now - start > patience:
                raise RunnerLost(f"job {job.id} has no result after {now - start:.0f} s")
            if now - checked > LIVENESS_SECONDS:
                checked = now
                await self._check_alive(job)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, longest)

    async def _check_alive(self, job: Job) -> None:
        """A FIFO without reader means that the runner is gone; its last word may come first."""
        if self._send(b""):
            return
        await asyncio.sleep(0.2)
        if _read(self._out / f"{job.id}.json", MAX_RESULT) is None:
            raise RunnerLost(f"the runner is gone while job {job.id} was running")


def _parse(job: Job, data: bytes) -> JobResult:
    try:
        result = JobResult.from_bytes(data)
    except pydantic.ValidationError as error:
        raise RunnerLost(
            f"job {job.id}: its result is none ({error.error_count()} problems)"
        ) from None
    if result.id != job.id:
        raise RunnerLost(f"job {job.id}: its result is of {result.id!r:.120}")
    return result


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
    partial.replace(path)


def _read(path: Path, limit: int) -> bytes | None:
    """A regular file's first bytes; None when there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read(limit)
