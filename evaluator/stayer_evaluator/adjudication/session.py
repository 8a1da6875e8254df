"""The life of an adjudicator process: prove isolation, read what is fixed, work, close."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from stayer_evaluator.adjudication.bench import Bench, Restore
from stayer_evaluator.adjudication.closing import (
    complete_trace,
    create_or_read,
    merged,
    read_segments,
    trial_results,
    writer_names,
)
from stayer_evaluator.adjudication.evidence import Evidence
from stayer_evaluator.adjudication.gate import Gate
from stayer_evaluator.adjudication.history import History
from stayer_evaluator.adjudication.inventory import GoldRun, TakenInventory, take_inventory
from stayer_evaluator.adjudication.ports import Jobs, Places, Progress
from stayer_evaluator.adjudication.suites.files import prepare_suite, read_suite, suite_by_name
from stayer_evaluator.adjudication.tries import Tries
from stayer_evaluator.adjudication.worker import Clock, Task, Worker, packed_logs
from stayer_evaluator.episode.trace import TraceWriter
from stayer_evaluator.records import places as known_places
from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.queue import SnapshotEntry, Writer
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.task import Inventory, TaskRecord
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.snapshots.base import NO_BASE, read_base
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectMissing, ObjectStore
from stayer_evaluator.tasks.bundle import extract_suite
from stayer_evaluator.tasks.graph import graph_of_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a process is given: the trial, the store, the runner, the clock."""

    document: TrialDocument
    store: ObjectStore
    jobs: Jobs
    places: Places
    writer: Writer
    progress: Progress
    clock: Clock = field(default_factory=lambda: Clock(wall=time.time, steady=time.monotonic))
    user_namespace: str = ""
    limits: str = ""
    runner: str = known_places.RUNNER
    new_reader: Callable[[ObjectStore, TrialKeys], QueueReader] = QueueReader

    @property
    def keys(self) -> TrialKeys:
        return TrialKeys(self.document.prefix)

    @property
    def task_keys(self) -> TaskKeys:
        return TaskKeys(self.document.task.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the session ended: its result document and, for an inventory trial, the inventory."""

    results: TrialResults
    inventory: Inventory | None = None


async def read_document(store: ObjectStore, prefix: str, sha256_hex: str) -> TrialDocument:
    """`trial.json`, which must have the digest that the pod was told. Raises CorruptObject."""
    data = await store.get(TrialKeys(prefix).document)
    if sha256(data).hexdigest() != sha256_hex:
        raise CorruptObject(f"{prefix}trial.json is not the document this pod was made for")
    return TrialDocument.from_bytes(data)


async def run_session(session: Session) -> Outcome:
    """Everything from the task's documents to `results.json`.

    Raises BenchFault, BenchStopped, RunnerLost, StoreError.
    """
    done = await _already_done(session)
    if done is not None:
        return done
    await _unpack_suite(session)
    if session.document.kind == TrialKind.INVENTORY:
        return await _run_inventory(session)
    return await _run_attempt(session)


async def _already_done(session: Session) -> Outcome | None:
    """An earlier life got as far as the results."""
    try:
        results = TrialResults.from_bytes(await session.store.get(session.keys.results))
    except ObjectMissing:
        return None
    inventory = None
    if session.document.kind == TrialKind.INVENTORY:
        inventory = await _read_inventory(session)
    return Outcome(results=results, inventory=inventory)


async def _unpack_suite(session: Session) -> None:
    data = await session.store.get(session.task_keys.suite)
    suite = session.places.suite

    def unpack() -> None:
        wipe(suite)
        suite.chmod(0o755)
        extract_suite(data, suite)
        prepare_suite(suite)

    await asyncio.to_thread(unpack)


async def _run_inventory(session: Session) -> Outcome:
    record = TaskRecord.from_bytes(await session.store.get(session.task_keys.record))
    started = session.clock.wall()
    taken = await take_inventory(
        GoldRun(
            record=record,
            store=session.store,
            jobs=session.jobs,
            places=session.places,
            label=f"inv-{session.writer.nonce}",
            test_seconds=session.document.timeouts.test_seconds,
            runner=session.runner,
        )
    )
    await _keep_logs(session, taken)
    results = _inventory_results(session, taken, started)
    await create_or_read(session.store, session.keys.results, results.to_bytes())
    return Outcome(results=results, inventory=taken.inventory)


async def _keep_logs(session: Session, taken: TakenInventory) -> None:
    """What gold printed where it did not pass, for whoever mends the task."""
    if taken.logs:
        key = session.keys.log(f"inventory-{session.writer.nonce}.log.zst")
        await session.store.create(key, packed_logs(taken.logs))


def _inventory_results(session: Session, taken: TakenInventory, started: float) -> TrialResults:
    document = session.document
    return TrialResults(
        kind=TrialKind.INVENTORY,
        namespace=document.namespace,
        run=document.run,
        trial=document.trial,
        task=document.task.name,
        task_digest=document.task.digest,
        agent=None,
        model=None,
        loop=None,
        attempt=document.attempt,
        valid=True,
        failure_mode=FailureMode.NONE,
        message="; ".join(taken.inventory.problems),
        metrics=None,
        user_namespace=session.user_namespace,
        started=started,
        ended=session.clock.wall(),
    )


async def _run_attempt(session: Session) -> Outcome:
    record = TaskRecord.from_bytes(await session.store.get(session.task_keys.record))
    inventory = await _read_inventory(session)
    gate = Gate(
        graph=graph_of_records(record.units),
        tested=frozenset(unit.id for unit in record.units if unit.has_tests),
    )
    trace = TraceWriter(
        session.store,
        session.keys,
        f"adjudicator-{session.writer.incarnation}-{session.writer.nonce}",
        wall=session.clock.wall,
        clock=session.clock.steady,
        interval=0.0,
    )
    packs = PackCache(session.places.packs)
    base = await read_base(session.store, session.task_keys) if inventory.base_manifest else NO_BASE
    if base.sha256 != inventory.base_manifest:
        raise CorruptObject("the base manifest is not the one that the inventory names")
    reader = session.new_reader(session.store, session.keys)
    worker = Worker(
        task=_task(session, record, inventory, gate),
        evidence=Evidence(session.store, reader, base, packs),
        store=session.store,
        keys=session.keys,
        reader=reader,
        tries=Tries(session.store, session.keys, session.writer),
        writer=session.writer,
        trace=trace,
        progress=session.progress,
        clock=session.clock,
    )
    try:
        history = await worker.work()
    finally:
        packs.close()
    results = trial_results(
        session.document, record, inventory, history, gate, session.user_namespace
    )
    await _close_trace(session, trace, history, results)
    data = await create_or_read(session.store, session.keys.results, results.to_bytes())
    return Outcome(results=TrialResults.from_bytes(data))


def _task(session: Session, record: TaskRecord, inventory: Inventory, gate: Gate) -> Task:
    files = read_suite(session.places.suite, [unit.id for unit in record.units])
    suite = suite_by_name(inventory.suite, files, inventory.canaries)

    def new_bench(entry: SnapshotEntry, restore: Restore) -> Bench:
        return Bench(
            jobs=session.jobs,
            suite=suite,
            places=session.places,
            inventory=inventory,
            restore=restore,
            candidate=entry.snapshot,
            label=f"{entry.number:08d}-{session.writer.nonce}",
            test_seconds=session.document.timeouts.test_seconds,
        )

    return Task(
        document=session.document,
        gate=gate,
        gold_lines={unit.id: unit.gold_lines for unit in record.units},
        places=session.places,
        new_bench=new_bench,
        environment={
            "user_namespace": session.user_namespace,
            "limits": session.limits,
            "suite": inventory.suite,
            "canaries": inventory.canaries,
        },
    )


async def _read_inventory(session: Session) -> Inventory:
    return Inventory.from_bytes(await session.store.get(session.task_keys.inventory))


async def _close_trace(
    session: Session, trace: TraceWriter, history: History, results: TrialResults
) -> None:
    """Complete this process's series, then merge all series into one object."""
    writers = [*writer_names(history), trace.writer]
    complete_trace(trace, history, await read_segments(session.store, session.keys, writers))
    last = history.snapshots[-1].snapshot if history.snapshots else None
    trace.add("trial_finished", last, results=json.loads(results.to_bytes()))
    await trace.flush()
    events = await read_segments(session.store, session.keys, writers)
    await create_or_read(session.store, session.keys.merged_trace, merged(events))
