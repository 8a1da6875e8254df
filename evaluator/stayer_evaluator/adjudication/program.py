"""The adjudicator as a program: composition, signals, exit status, termination message.

Exit status: 0 results written, 4 isolation or user namespace not enforced, 5 store unreachable
beyond its deadline, 143 stopped, 1 other trouble. Each with a termination message.
"""

import asyncio

import structlog

from stayer_evaluator.adjudication.bench import BenchFault, BenchStopped
from stayer_evaluator.adjudication.ports import Places
from stayer_evaluator.adjudication.reporting import LatestProgress, results_message
from stayer_evaluator.adjudication.runner_jobs import RunnerJobs
from stayer_evaluator.adjudication.session import Session, read_document, run_session
from stayer_evaluator.episode.config import RecorderSettings
from stayer_evaluator.episode.isolation import (
    NotIsolated,
    demand_user_namespace,
    prove_closed,
    user_namespace,
)
from stayer_evaluator.episode.jobs import JobClient, RunnerLost
from stayer_evaluator.episode.server import SidecarServer
from stayer_evaluator.episode.sidecar import (
    error_message,
    reporting,
    run_and_linger,
    run_sidecar,
    write_message,
)
from stayer_evaluator.records.exits import DONE, FAILED, NOT_ISOLATED, STOPPED, STORE_UNREACHABLE
from stayer_evaluator.records.queue import Writer
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.storage.relay import connect_relay
from stayer_evaluator.storage.retry import StoreCounters
from stayer_evaluator.storage.store import ObjectStore, StoreError

#: After a SIGTERM the runner's own word that it was stopped needs a moment to arrive.
STOP_PATIENCE = 5.0
log = structlog.get_logger(__name__)


class Program:
    """One process of the adjudicator. `run` returns its exit status."""

    def __init__(
        self, settings: RecorderSettings, store: ObjectStore, counters: StoreCounters | None = None
    ) -> None:
        self.settings = settings
        self.store = store
        self.progress = LatestProgress(settings.trial, settings.incarnation, counters)
        self.jobs = JobClient(
            settings.places.jobs, settings.places.out, patience=settings.timing.result_patience
        )
        self.server = SidecarServer(_nothing)
        self.stopping = asyncio.Event()

    async def run(self) -> int:
        """The whole life, with exactly one termination message."""
        code, message = await self._guarded()
        log.info("exit", code=code, **message.model_dump(mode="json", exclude_defaults=True))
        write_message(self.settings.places.termination_log, message)
        if code == DONE:
            await self.jobs.quit(f"quit-{self.settings.nonce}")
        return code

    async def _guarded(self) -> tuple[int, TerminationMessage]:
        """Every expected end as status and message."""
        working = asyncio.create_task(self._live())
        stopper = asyncio.create_task(self._stop(working))
        try:
            return DONE, await working
        except (BenchStopped, asyncio.CancelledError):
            return STOPPED, TerminationMessage(kind="stopped")
        except (NotIsolated, RunnerLost, BenchFault, StoreError, OSError) as error:
            return judge(error)
        finally:
            stopper.cancel()
            await self.server.close()

    async def _stop(self, working: asyncio.Task[TerminationMessage]) -> None:
        await self.stopping.wait()
        await asyncio.sleep(STOP_PATIENCE)
        working.cancel()

    async def _live(self) -> TerminationMessage:
        settings = self.settings
        self.jobs.prepare()
        await self.server.listen(settings.host, settings.port)
        await prove_closed(settings.must_fail, settings.timing.isolation_patience)
        document = await read_document(self.store, settings.prefix, settings.trial_sha256)
        namespace = user_namespace()
        demand_user_namespace(document.user_namespaces, namespace)
        self.server.started = True
        session = Session(
            document=document,
            store=self.store,
            jobs=RunnerJobs(self.jobs, settings.timing.runner_patience),
            places=places_of(settings),
            writer=Writer(incarnation=settings.incarnation, nonce=settings.nonce),
            progress=self.progress,
            user_namespace=namespace,
            limits=settings.limits,
            runner=settings.task_side.runner,
        )
        async with reporting(settings, self.progress.current):
            outcome = await run_session(session)
        return results_message(outcome, self.progress.current())


def judge(error: Exception) -> tuple[int, TerminationMessage]:
    """Exit status and termination message of an error that ends the adjudicator."""
    text = str(error)[:1500] or type(error).__name__
    match error:
        case NotIsolated():
            return NOT_ISOLATED, error_message(error.reason, text)
        case RunnerLost():
            return FAILED, error_message("RunnerLost", text)
        case BenchFault():
            return FAILED, error_message("TaskContainerFault", text)
        case StoreError() if error.retryable:
            return STORE_UNREACHABLE, error_message("StoreUnreachable", text)
        case StoreError():
            return FAILED, error_message("StoreRefused", f"{type(error).__name__}: {text}")
        case _:
            return FAILED, error_message("AdjudicatorFailed", f"{type(error).__name__}: {text}")


def places_of(settings: RecorderSettings) -> Places:
    """Folders as this container sees them, and the task container's names for them."""
    return Places(
        workspace=settings.places.workspace,
        suite=settings.places.suite,
        home=settings.places.home,
        packs=settings.places.state / "packs",
        inside={
            "workspace": settings.task_side.workspace,
            "suite": settings.task_side.suite,
            "home": settings.task_side.home,
        },
    )


async def _nothing() -> None:
    """The adjudicator has nothing to drain: what is not adjudicated yet, its successor will."""


async def serve(settings: RecorderSettings) -> int:
    """Run to the end, then wait for the kubelet."""
    store = connect_relay(settings.relay_url, prefix=settings.prefix, token=settings.places.token)
    program = Program(settings, store, store.counters)
    return await run_and_linger(program.run, program.stopping.set)


def main() -> int:
    """Entry point of the container."""
    return run_sidecar("adjudicator", serve, judge)
