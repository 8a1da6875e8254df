"""`python3 -m stayer_evaluator.adjudication`: the sidecar of the adjudicator pod.

Exit codes: 0 results written, 1 other trouble, 4 isolation or user namespace not enforced, 5 store
unreachable beyond its deadline. Each with a termination message.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import structlog

from stayer_evaluator.adjudication.bench import BenchFault, BenchStopped
from stayer_evaluator.adjudication.ports import Places
from stayer_evaluator.adjudication.reporting import LatestProgress, results_message, write_message
from stayer_evaluator.adjudication.runner_jobs import RunnerJobs
from stayer_evaluator.adjudication.session import Outcome, Session, read_document, run_session
from stayer_evaluator.episode.config import BadSettings, RecorderSettings, read_settings
from stayer_evaluator.episode.isolation import (
    NotIsolated,
    demand_user_namespace,
    prove_closed,
    user_namespace,
)
from stayer_evaluator.episode.jobs import JobClient, RunnerLost
from stayer_evaluator.episode.progress import ProgressSender
from stayer_evaluator.episode.server import SidecarServer
from stayer_evaluator.records.queue import Writer
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.storage.relay import connect_relay
from stayer_evaluator.storage.store import StoreError

#: Of a stop: the runner's own word that it was stopped needs a moment to arrive.
STOP_PATIENCE = 5.0
_log = structlog.get_logger()


def main() -> int:
    """Run the adjudicator; returns its exit code."""
    try:
        settings = read_settings(os.environ)
    except BadSettings as error:
        return _end(
            Path(os.devnull), 1, TerminationMessage(kind="error", reason="BadSettings",
                                                    message=str(error))
        )  # fmt: skip
    return asyncio.run(_run(settings))


async def _run(settings: RecorderSettings) -> int:
    where = settings.places.termination_log
    work = asyncio.create_task(_adjudicate(settings))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: loop.call_later(STOP_PATIENCE, work.cancel))
    try:
        message = await work
    except NotIsolated as error:
        return _end(where, 4, _error(error.reason, error))
    except (BenchStopped, asyncio.CancelledError):
        return _end(where, 1, TerminationMessage(kind="stopped", reason="Stopped"))
    except RunnerLost as error:
        return _end(where, 1, _error("RunnerLost", error))
    except BenchFault as error:
        return _end(where, 1, _error("TaskContainerFault", error))
    except StoreError as error:
        return _end(where, 5, _error("StoreUnreachable", error))
    except Exception as error:  # noqa: BLE001 (the edge: whatever it is, it gets a message)
        _log.exception("adjudicator failed")
        return _end(where, 1, _error("AdjudicatorFailed", error))
    return _end(where, 0, message)


async def _adjudicate(settings: RecorderSettings) -> TerminationMessage:
    store = connect_relay(settings.relay_url, prefix=settings.prefix, token=settings.places.token)
    await prove_closed(settings.must_fail, settings.timing.isolation_patience)
    document = await read_document(store, settings.prefix, settings.trial_sha256)
    namespace = user_namespace()
    demand_user_namespace(document.user_namespaces, namespace)
    client = JobClient(
        settings.places.jobs, settings.places.out, patience=settings.timing.result_patience
    )
    client.prepare()
    server = SidecarServer(_nothing)
    await server.listen(settings.host, settings.port)
    server.started = True
    progress = LatestProgress(settings.trial, settings.incarnation)
    sender = ProgressSender(
        settings.progress_url,
        settings.places.token,
        lambda: progress.current,
        settings.timing.progress_interval,
    )
    sending = asyncio.create_task(sender.run())
    session = Session(
        document=document,
        store=store,
        jobs=RunnerJobs(client, settings.timing.runner_patience),
        places=_places(settings),
        writer=Writer(incarnation=settings.incarnation, nonce=settings.nonce),
        progress=progress,
        user_namespace=namespace,
        limits=settings.limits,
        runner=settings.task_side.runner,
    )
    try:
        outcome: Outcome = await run_session(session)
    finally:
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        await sender.close()
        await server.close()
    message = results_message(outcome, progress.current)
    write_message(settings.places.termination_log, message)
    await client.quit(f"quit-{settings.nonce}")
    return message


async def _nothing() -> None:
    """The adjudicator has nothing to drain: what is not adjudicated yet, its successor will."""


def _places(settings: RecorderSettings) -> Places:
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


def _error(reason: str, error: Exception) -> TerminationMessage:
    return TerminationMessage(kind="error", reason=reason, message=str(error)[:1500])


def _end(where: Path, code: int, message: TerminationMessage) -> int:
    """Leave the message, log it, return the exit code."""
    _log.info("adjudicator ends", code=code, **message.model_dump(exclude_defaults=True))
    with contextlib.suppress(OSError):
        write_message(where, message)
    return code


if __name__ == "__main__":
    sys.exit(main())
