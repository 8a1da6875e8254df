"""The evidence as a person reaches it: S3 by the environment's STAYER_S3_* and AWS_* variables."""

import asyncio
import os
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import zstandard

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EndEntry, SnapshotEntry
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.run_results import RunResults, TrialLine
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.scoring.run import summarize
from stayer_evaluator.snapshots.base import NO_BASE, read_base
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import restore as restore_tree
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.settings import SettingsError, StoreSettings
from stayer_evaluator.storage.store import MutableStore, ObjectMissing, ObjectStore
from stayer_operator.api.wording import counted
from stayer_operator.cli.again import newest_attempts
from stayer_operator.cli.documents import snapshot_document
from stayer_operator.cli.errors import CliError

__all__ = ["TaskRecord", "open_store"]

Document = dict[str, Any]
T = TypeVar("T")
READS_AT_ONCE = 16


def open_store() -> MutableStore:
    """The store of the environment. Raises CliError naming every variable that is wrong."""
    try:
        return connect_s3(StoreSettings.from_env(os.environ))
    except SettingsError as error:
        raise CliError(f"object store: {error}") from error


def trial_results(trial: Document) -> TrialResults | None:
    """The score of a trial; None while it has none."""
    return asyncio.run(_trial_results(open_store(), trial))


def run_results(run: Document, trials: list[Document]) -> RunResults:
    """The report of a run over its trials as they stand now; inventory trials are left out.

    Of a cell that was run again only the newest generation counts.
    """
    attempts = newest_attempts(trials)

    async def read() -> list[TrialResults | None]:
        store = open_store()
        return await _gather([_trial_results(store, trial) for trial in attempts])

    lines = [_line(t, r) for t, r in zip(attempts, asyncio.run(read()), strict=True)]
    return summarize(
        namespace=run["metadata"]["namespace"],
        run=run["metadata"]["name"],
        run_uid=run["metadata"]["uid"],
        benchmark=run["spec"]["benchmark"],
        test_visibility=run["spec"].get("testVisibility", "attached"),
        network=run["spec"].get("network", "closed"),
        trials=lines,
    )


def logs(trial: Document, role: str) -> list[tuple[str, str]]:
    """Stored logs and transcripts of one pod of a trial: key and text."""
    prefix = trial["spec"]["prefix"]
    kinds = ("logs/adjudication",) if role == "b" else ("logs/", "transcripts/")

    async def read() -> list[tuple[str, str]]:
        store = open_store()
        found = [key for kind in kinds for key in await store.keys(f"{prefix}{kind}")]
        chosen = [k for k in found if role == "b" or "/adjudication" not in k]
        return [(key, _text(key, await store.get(key))) for key in chosen]

    return asyncio.run(read())


def snapshots(trial: Document) -> list[Document]:
    """The snapshots of a trial in order, each with what was found on it."""

    async def read() -> list[Document]:
        store = open_store()
        keys = TrialKeys(trial["spec"]["prefix"])
        entries = await _snapshots(store, keys)
        verdicts = await _gather([_verdict(store, keys, entry.number) for entry in entries])
        return [snapshot_document(e, v) for e, v in zip(entries, verdicts, strict=True)]

    return asyncio.run(read())


def restore(trial: Document, number: int, to: Path) -> SnapshotEntry:
    """Restore snapshot `number` (-1: the last) into the directory; what its entry says of it.

    Raises CliError when the trial has no such snapshot.
    """
    to.mkdir(parents=True, exist_ok=True)

    async def fetch() -> SnapshotEntry:
        store = open_store()
        entries = await _snapshots(store, TrialKeys(trial["spec"]["prefix"]))
        if not entries or not -1 <= number < len(entries):
            found = counted(len(entries), "snapshot")
            raise CliError(f"snapshot {number}: found {found}, from 0")
        entry = entries[number]
        task = TaskKeys(trial["spec"]["task"]["digest"])
        tree = entry_tree(entry, await read_base(store, task) if entry.base else NO_BASE)
        cache = PackCache(to.with_name(f".{to.name}.packs"))
        try:
            await cache.fetch(store, tree)
            restore_tree(tree, cache, to)
        finally:
            cache.discard_others({})
            cache.directory.rmdir()
        return entry

    return asyncio.run(fetch())


async def _trial_results(store: ObjectStore, trial: Document) -> TrialResults | None:
    key = TrialKeys(trial["spec"]["prefix"]).results
    try:
        return TrialResults.from_bytes(await store.get(key))
    except ObjectMissing:
        return None
    except pydantic.ValidationError as error:
        raise CliError(f"{key}: written by another version: {error}") from error


async def _snapshots(store: ObjectStore, keys: TrialKeys) -> list[SnapshotEntry]:
    reader = QueueReader(store, keys)
    entries = []
    while (entry := await reader.poll()) is not None and not isinstance(entry, EndEntry):
        if isinstance(entry, SnapshotEntry):
            entries.append(entry)
    return entries


async def _verdict(store: ObjectStore, keys: TrialKeys, number: int) -> Verdict | None:
    try:
        return Verdict.from_bytes(await store.get(keys.verdict(number)))
    except ObjectMissing:
        return None


def _line(trial: Document, results: TrialResults | None) -> TrialLine:
    spec, status = trial["spec"], trial.get("status", {})
    model = spec.get("model")
    mode = status.get("failureMode") or FailureMode.NONE.value
    return TrialLine(
        trial=trial["metadata"]["name"],
        task=spec["task"]["name"],
        agent=spec["agent"],
        model=None if model == "none" else model,
        loop=spec.get("loopProfile"),
        attempt=spec["attempt"],
        phase=status.get("phase", "Pending"),
        valid=results is not None and results.valid,
        failure_mode=results.failure_mode if results else FailureMode(mode),
        metrics=results.metrics if results else None,
        snapshots_taken=results.snapshots_taken if results else status.get("snapshotsTaken", 0),
        snapshots_adjudicated=(
            results.snapshots_adjudicated if results else status.get("snapshotsAdjudicated", 0)
        ),
        canaries_run=results.canaries_run if results else 0,
        infra_restarts=results.infra_restarts if results else status.get("infraRestarts", 0),
        seconds=_seconds(results),
    )


def _seconds(results: TrialResults | None) -> float | None:
    if results is None or results.started is None or results.ended is None:
        return None
    return results.ended - results.started


def _text(key: str, data: bytes) -> str:
    if key.endswith(".zst"):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data.decode(errors="replace")


async def _gather(calls: Sequence[Awaitable[T]]) -> list[T]:
    """All of them, in order, a bounded number at once."""
    places = asyncio.Semaphore(READS_AT_ONCE)

    async def one(call: Awaitable[T]) -> T:
        async with places:
            return await call

    return list(await asyncio.gather(*(one(call) for call in calls)))
