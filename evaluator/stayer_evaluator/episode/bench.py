"""What a round may do: run jobs, let agent time pass, mark steps as finished.

Agent time runs only while a job runs or a wait lasts: a slow store costs the agent nothing.
"""

import asyncio
import time
from collections.abc import Callable

from stayer_evaluator.episode import cursor as cursors
from stayer_evaluator.episode.config import RecorderSettings
from stayer_evaluator.episode.jobs import JobClient, RunnerLost
from stayer_evaluator.episode.sampler import Sampler
from stayer_evaluator.episode.session import RunningJob, Session, SessionState
from stayer_evaluator.records.jobs import Job, JobResult
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EpisodeCursor

STOP_SECONDS = 15.0
"""For the runner's last word once the pod is being stopped."""
LOST_SECONDS = 60.0
"""For the kubelet to notice that the task container is gone, and to say so."""


class Drained(Exception):  # noqa: N818 (reads as what happened)
    """The pod is being stopped: take the last snapshot, write no end."""


class Stopwatch:
    """Seconds of agent time, by the monotonic clock."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        running = 0.0 if self._since is None else self._clock() - self._since
        return self._seconds + running

    def __enter__(self) -> None:
        self._since = self._clock()

    def __exit__(self, *_: object) -> None:
        self._seconds = self.seconds
        self._since = None

    def add(self, seconds: float) -> None:
        """Count time that passed while nobody looked."""
        self._seconds += seconds


class Bench:
    """One episode's workbench. `launch` numbers the starts of the harness within a round."""

    def __init__(
        self,
        settings: RecorderSettings,
        jobs: JobClient,
        session: Session,
        draining: asyncio.Event,
        cursor: EpisodeCursor,
    ) -> None:
        state = session.state or SessionState(cursor=cursor)
        self.settings = settings
        self.jobs = jobs
        self.retries = state.retries
        self._session = session
        self._draining = draining
        self._cursor = cursor
        self._running = state.running
        self._watch = Stopwatch(cursor.spent_seconds)

    @property
    def cursor(self) -> EpisodeCursor:
        """Where the episode stands, with the agent time spent by now."""
        return cursors.spent(self._cursor, self._watch.seconds)

    def left(self, limit: float) -> float:
        """Seconds left of a round that may take `limit` in all."""
        return limit - cursors.seconds_in_round(self.cursor)

    async def hello(self, patience: float) -> str:
        """Wait for the runner to appear; its version. Its answer means that restoring is over.

        Where an earlier process of this pod has a job under way nothing is asked, as the answer
        would come after that job. Raises Drained.
        """
        self._save()
        if self._running is not None:
            return ""
        job = Job(id=f"hello-{self.settings.nonce}", kind="wipe")
        self.jobs.write(job)
        return (await self._finish(job, start_patience=patience, stop_patience=0)).runner

    def is_running(self, key: str) -> bool:
        """Whether an earlier process of this pod announced that job of this launch."""
        return self._running is not None and self._running.key == self._key(key)

    def _key(self, key: str) -> str:
        return f"r{self._cursor.round}-l{self.retries + 1}-{key}"

    async def job(
        self, key: str, make: Callable[[str], Job], stdin: bytes | None = None
    ) -> JobResult:
        """Run the job that `make` builds for an id; `key` tells it from the others of the round.

        A job of that key that an earlier process of this pod announced is taken over instead.
        Raises Drained.
        """
        self.check()
        running = self._running
        taken_over = self.is_running(key)
        if running is None or not taken_over:
            name = self._key(key)
            running = RunningJob(key=name, job=make(f"{name}-{self.settings.nonce}"))
            self.jobs.write(running.job, stdin)
            self._running = running
            self._save()
        before = self._watch.seconds
        with self._watch:
            result = await self._finish(running.job)
        if taken_over:
            took = min(result.ended - result.started, running.job.timeout_seconds)
            self._watch.add(max(0.0, took - (self._watch.seconds - before)))
        return result

    async def wait(self, seconds: float) -> None:
        """Let agent time pass. Raises Drained."""
        self.check()
        with self._watch:
            try:
                async with asyncio.timeout(seconds):
                    await self._draining.wait()
            except TimeoutError:
                return
        raise Drained

    def check(self) -> None:
        """Raises Drained when the pod is being stopped."""
        if self._draining.is_set():
            raise Drained

    async def finish_step(self, index: int, sampler: Sampler, since: int) -> None:
        """The step is done, and what it did is durable when this returns.

        A timed sample taken during the step (any beyond snapshot `since`) may hold all that the
        step did under the mark of the step before: then the mark alone makes one more snapshot.
        """
        self._cursor = cursors.after_step(self._cursor, index, self._watch.seconds)
        await sampler.must_sample(force=sampler.count > since)
        self._running = None
        self._save()

    def count_retry(self) -> None:
        """One more rate-limit answer in this round."""
        self.retries += 1
        self._running = None
        self._save()

    def finish_round(self, failure: FailureMode, *, changed: bool) -> None:
        """The round is over."""
        self._cursor = cursors.after_round(
            self.cursor, failure, retries=self.retries, changed=changed
        )
        self.retries = 0
        self._running = None
        self._save()

    def _save(self) -> None:
        self._session.save(
            SessionState(
                cursor=self.cursor,
                retries=self.retries,
                running=self._running,
            )
        )

    async def _finish(
        self, job: Job, *, start_patience: float | None = None, stop_patience: float = STOP_SECONDS
    ) -> JobResult:
        """The job's result. Raises Drained when the pod is stopped before or because it ended."""
        finish = asyncio.ensure_future(self.jobs.finish(job, start_patience=start_patience))
        stop = asyncio.ensure_future(self._draining.wait())
        try:
            await asyncio.wait((finish, stop), return_when=asyncio.FIRST_COMPLETED)
            if not finish.done():
                await asyncio.wait((finish,), timeout=stop_patience)
            if not finish.done():
                raise Drained
            result = finish.result()
        except RunnerLost as error:
            await asyncio.wait((stop,), timeout=LOST_SECONDS)
            raise Drained from error
        finally:
            finish.cancel()
            stop.cancel()
        if result.stopped:
            raise Drained
        return result
