"""The recorder as a program: composition, signals, exit status, termination message."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import structlog

from stayer_evaluator.episode.agent import Catalog
from stayer_evaluator.episode.bench import Bench, Drained
from stayer_evaluator.episode.config import RecorderSettings
from stayer_evaluator.episode.cursor import latest_round
from stayer_evaluator.episode.isolation import NotIsolated
from stayer_evaluator.episode.jobs import JobClient
from stayer_evaluator.episode.opening import BadTrial, Opening, open_episode
from stayer_evaluator.episode.recorder import Recorder
from stayer_evaluator.episode.sampler import Sampler
from stayer_evaluator.episode.server import SidecarServer, is_own_address
from stayer_evaluator.episode.session import Session
from stayer_evaluator.episode.sidecar import (
    error_message,
    reporting,
    run_and_linger,
    run_sidecar,
    until_over,
    write_message,
)
from stayer_evaluator.episode.trace import TraceWriter
from stayer_evaluator.harnesses.catalog import harnesses
from stayer_evaluator.records.exits import (
    DONE,
    FAILED,
    FENCED,
    NOT_ISOLATED,
    STOPPED,
    STORE_UNREACHABLE,
)
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.records.reports import ProgressReport, TerminationMessage
from stayer_evaluator.snapshots.resume import ResumeLayer
from stayer_evaluator.snapshots.take import Snapshotter
from stayer_evaluator.storage.queue import Fenced
from stayer_evaluator.storage.relay import connect_relay
from stayer_evaluator.storage.retry import StoreCounters
from stayer_evaluator.storage.store import AccessDenied, ObjectMissing, ObjectStore, StoreError

log = structlog.get_logger(__name__)

T = TypeVar("T")
CANCEL_SECONDS = 1.0


class Program:
    """One process of the recorder. `run` returns its exit status."""

    def __init__(
        self,
        settings: RecorderSettings,
        store: ObjectStore,
        *,
        counters: StoreCounters | None = None,
        catalog: Catalog | None = None,
        wall: Callable[[], float] = time.time,
        own: Callable[[str], bool] = is_own_address,
    ) -> None:
        self.settings = settings
        self.store = store
        self.counters = counters or StoreCounters()
        self.catalog = harnesses() if catalog is None else catalog
        self.wall = wall
        self.jobs = JobClient(
            settings.places.jobs, settings.places.out, patience=settings.timing.result_patience
        )
        self.draining = asyncio.Event()
        self.settled = asyncio.Event()
        self.session = Session(settings.places.state)
        self.server = SidecarServer(self.drain, own=own)
        self.recorder: Recorder | None = None

    async def drain(self) -> None:
        """Stop the episode; returns once everything that can be saved is."""
        self.draining.set()
        try:
            async with asyncio.timeout(self.settings.timing.drain_patience):
                await self.settled.wait()
        except TimeoutError:
            log.warning("drain took too long")

    async def run(self) -> int:
        """The whole life, with exactly one termination message."""
        try:
            code, message = await self._unless_over()
        finally:
            self.settled.set()
            if self.recorder is not None:
                self.recorder.sampler.close()
        write_message(self.settings.places.termination_log, message)
        log.info("exit", code=code, kind=message.kind, reason=message.reason)
        if code in (DONE, FENCED):  # nothing may go on in the task container
            await self.jobs.quit(f"quit-{self.settings.nonce}")
        return code

    async def _unless_over(self) -> tuple[int, TerminationMessage]:
        """The life, cut short where the pod is being stopped because its trial was deleted: who
        deletes a run waits for its pods, and nothing that could still be saved is wanted.
        """
        life = asyncio.ensure_future(self._guarded())
        over = asyncio.ensure_future(self._over())
        try:
            await asyncio.wait((life, over), return_when=asyncio.FIRST_COMPLETED)
            if not life.done() and over.exception() is not None:  # no answer is no end
                log.error("not asked whether the trial is over", error=str(over.exception()))
                await asyncio.wait((life,))
            if life.done():
                return life.result()
        finally:
            life.cancel()
            over.cancel()
        while not life.done():  # again, should anything in it take that for a matter of its own
            await asyncio.wait((life,), timeout=CANCEL_SECONDS)
            life.cancel()
        log.info("the trial is over: nothing more is saved")
        return STOPPED, TerminationMessage(kind="stopped", **self._numbers())

    async def _over(self) -> None:
        await self.draining.wait()
        await until_over(self.settings, self.report)

    async def _guarded(self) -> tuple[int, TerminationMessage]:
        """Every expected end as status and message."""
        try:
            return DONE, await self._live()
        except (ExceptionGroup, *EXPECTED) as error:
            cause: Exception | None = weightiest(error)
        if isinstance(cause, Drained):
            cause = await self._drain_now()
        if cause is None:
            return STOPPED, TerminationMessage(kind="stopped", **self._numbers())
        return judge(cause)

    async def _live(self) -> TerminationMessage:
        settings = self.settings
        self.jobs.prepare()
        await self.server.listen(settings.host, settings.port)
        opening = await self._unless_stopped(
            open_episode(self.store, settings, self.session, self.wall)
        )
        if opening.queue.end is not None:  # restarted after the end: only the rest is left to do
            return _end_message(opening.queue.end, opening)
        recorder = self._compose(opening)
        self.recorder = recorder
        await self._unless_stopped(recorder.begin())
        self.server.started = True
        async with reporting(settings, self.report):
            await recorder.close(await recorder.run())
        assert opening.queue.end is not None
        return _end_message(opening.queue.end, opening)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Work before the agent may start: a stop ends it at once, as there is nothing to save.

        Raises Drained, and what the work raises.
        """
        working = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self.draining.wait())
        try:
            await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Drained
            return working.result()
        finally:
            working.cancel()
            stop.cancel()

    def _compose(self, opening: Opening) -> Recorder:
        settings, timing, places = self.settings, self.settings.timing, self.settings.places
        bench = Bench(settings, self.jobs, self.session, self.draining, opening.cursor)
        trace = TraceWriter(
            self.store,
            opening.keys,
            settings.writer_name,
            wall=self.wall,
            clock=time.monotonic,
            interval=timing.trace_interval,
        )
        sampler = Sampler(
            Snapshotter(places.workspace, opening.queue, opening.base, opening.document.snapshots),
            ResumeLayer(places.workspace, places.home, opening.queue, opening.layer),
            trace,
            lambda: bench.cursor,
            wall=self.wall,
            patience=timing.store_patience,
            pause=timing.retry_pause,
            layer_interval=timing.resume_interval,
        )
        return Recorder(
            settings,
            self.store,
            opening,
            bench,
            sampler,
            trace,
            catalog=self.catalog,
            wall=self.wall,
        )

    async def _drain_now(self) -> Exception | None:
        """Save what can be saved; what stood in the way, or nothing."""
        if self.recorder is None or not self.server.started:
            return None
        try:
            await self.recorder.drain()
        except EXPECTED as error:
            return error
        return None

    def _numbers(self) -> dict[str, int]:
        recorder = self.recorder
        if recorder is None or recorder.sampler.last is None:
            return {}
        return {
            "rounds": len(recorder.bench.cursor.rounds),
            "snapshots_taken": recorder.sampler.last.snapshot + 1,
        }

    def report(self) -> ProgressReport:
        """What is known now, cumulative."""
        settings, recorder = self.settings, self.recorder
        if recorder is None:
            return ProgressReport(trial=settings.trial, role="a", incarnation=settings.incarnation)
        cursor = recorder.bench.cursor
        last = recorder.sampler.last
        return ProgressReport(
            trial=settings.trial,
            role="a",
            incarnation=settings.incarnation,
            round=latest_round(cursor),
            step=cursor.step,
            round_seconds=tuple(record.seconds for record in cursor.rounds),
            snapshots_taken=0 if last is None else last.snapshot + 1,
            bytes_stored=self.counters.bytes_written,
            store_errors=self.counters.errors,
            store_requests=self.counters.total,
        )


EXPECTED = (Drained, NotIsolated, StoreError, BadTrial, OSError)
"""Weightiest first; Fenced, a StoreError, goes before all."""


def weightiest(error: Exception) -> Exception:
    """The one error that decides; a group with an unexpected one is raised on."""
    if not isinstance(error, ExceptionGroup):
        return error
    leaves = list(_leaves(error))
    if not all(isinstance(leaf, EXPECTED) for leaf in leaves):
        raise error
    for kind in (Fenced, *EXPECTED):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    raise error


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def judge(error: Exception) -> tuple[int, TerminationMessage]:
    """Exit status and termination message of an error that ends the recorder."""
    text = str(error)[:2000]
    match error:
        case Fenced():
            return FENCED, TerminationMessage(kind="fenced", message=text)
        case NotIsolated():
            return NOT_ISOLATED, error_message(error.reason, text)
        case AccessDenied() | ObjectMissing():
            return FAILED, error_message("StoreRefused", text)
        case StoreError():
            return STORE_UNREACHABLE, error_message("StoreUnreachable", text)
        case BadTrial():
            return FAILED, error_message("RecorderFailed", text)
        case _:
            return FAILED, error_message("RecorderFailed", f"{type(error).__name__}: {text}")


def _end_message(end: EndEntry, opening: Opening) -> TerminationMessage:
    last = opening.queue.last_snapshot
    return TerminationMessage(
        kind="end",
        message=end.message[:1000],
        failure_mode=end.failure_mode,
        rounds=len(end.episode.rounds),
        snapshots_taken=None if last is None else last.snapshot + 1,
    )


async def serve(settings: RecorderSettings) -> int:
    """Run to the end, then wait for the kubelet."""
    store = connect_relay(settings.relay_url, prefix=settings.prefix, token=settings.places.token)
    program = Program(settings, store, counters=store.counters)
    return await run_and_linger(program.run, program.draining.set)


def main() -> int:
    """Entry point of the container."""
    return run_sidecar("recorder", serve, judge)
