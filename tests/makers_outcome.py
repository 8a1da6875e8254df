"""The evidence of a trial in the object store, and the part of it that owes nothing to luck."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import zstandard

from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.queue import EndEntry, EpochEntry, SnapshotEntry
from stayer_evaluator.records.results import Metrics, TrialResults
from stayer_evaluator.records.task import Inventory, TaskRecord
from stayer_evaluator.records.trace import TraceEvent
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.scoring.metrics import score
from stayer_evaluator.snapshots.base import NO_BASE, read_base
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import restore
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.queue import Entry, decode_entry
from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.storage.store import MutableStore, ObjectMissing

T = TypeVar("T")
HISTORY = ("implemented", "unit_released", "unit_cleared", "regression", "recovery")


def with_store(work: Callable[[MutableStore], Awaitable[T]]) -> T:
    """Do something with the object store of the environment. Raises StoreError."""

    async def run() -> T:
        store = connect_s3(StoreSettings.from_env(os.environ))
        return await work(store)

    return asyncio.run(run())


def read_object(key: str) -> bytes | None:
    """An object, None when there is none."""

    async def get(store: MutableStore) -> bytes | None:
        try:
            return await store.get(key)
        except ObjectMissing:
            return None

    return with_store(get)


def read_objects(prefix: str) -> dict[str, bytes]:
    """All objects below a prefix, by key."""

    async def get(store: MutableStore) -> dict[str, bytes]:
        return {key: await store.get(key) for key in await store.keys(prefix)}

    return with_store(get)


def list_keys(prefix: str) -> list[str]:
    """All keys below a prefix, without it."""
    found = with_store(lambda store: store.keys(prefix))
    return [key.removeprefix(prefix) for key in found]


@dataclass(frozen=True)
class Evidence:
    """Everything that is kept of one attempt."""

    document: TrialDocument
    task: TaskRecord
    inventory: Inventory
    entries: tuple[Entry, ...]
    verdicts: tuple[Verdict, ...]
    trace: tuple[TraceEvent, ...]
    results: TrialResults

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, EpochEntry))

    @property
    def snapshots(self) -> tuple[SnapshotEntry, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, SnapshotEntry))

    @property
    def end(self) -> EndEntry:
        [end] = [entry for entry in self.entries if isinstance(entry, EndEntry)]
        assert end is self.entries[-1], "nothing may follow the end"
        return end

    def rescored(self) -> Metrics:
        """The metrics anew, from queue and verdicts alone."""
        rounds = len(self.end.episode.rounds) or self.end.episode.round
        units, order = self.task.units, self.task.reference_order
        return score(units, order, self.inventory, self.verdicts, self.snapshots, rounds)


def read_evidence(prefix: str) -> Evidence:
    """Read and check the evidence of an ended attempt. Raises StoreError where something lacks."""
    return with_store(lambda store: _read(store, TrialKeys(prefix)))


async def _read(store: MutableStore, keys: TrialKeys) -> Evidence:
    document = TrialDocument.from_bytes(await store.get(keys.document))
    task = TaskKeys(document.task.digest)
    entries = await _entries(store, keys)
    verdicts = [
        Verdict.from_bytes(await store.get(key))
        for key in await store.keys(f"{keys.prefix}verdicts/")
        if "." not in key.rpartition("/")[2]
    ]
    trace = (
        zstandard.ZstdDecompressor().decompressobj().decompress(await store.get(keys.merged_trace))
    )
    return Evidence(
        document=document,
        task=TaskRecord.from_bytes(await store.get(task.record)),
        inventory=Inventory.from_bytes(await store.get(task.inventory)),
        entries=entries,
        verdicts=tuple(verdicts),
        trace=tuple(TraceEvent(**orjson.loads(line)) for line in trace.splitlines()),
        results=TrialResults.from_bytes(await store.get(keys.results)),
    )


async def _entries(store: MutableStore, keys: TrialKeys) -> tuple[Entry, ...]:
    """The queue; its numbers must be dense."""
    found = await store.keys(f"{keys.prefix}queue/")
    assert found == [keys.queue(number) for number in range(len(found))]
    return tuple([decode_entry(await store.get(k), n) for n, k in enumerate(found)])


def queue_entries(prefix: str) -> tuple[Entry, ...]:
    """Entries that are durable now."""
    return with_store(lambda store: _entries(store, TrialKeys(prefix)))


def snapshots_taken(prefix: str) -> int:
    """Snapshots that are durable now."""
    return sum(isinstance(entry, SnapshotEntry) for entry in queue_entries(prefix))


@dataclass(frozen=True)
class Column:
    """One verdict without its times and writers."""

    snapshot: int
    tree: str
    states: Mapping[str, UnitState]
    cases: Mapping[str, Mapping[str, CaseStatus]]
    suite: Mapping[str, UnitState]
    cleared: tuple[str, ...]
    regressions: tuple[str, ...]
    recoveries: tuple[str, ...]
    canaries_hold: bool


@dataclass(frozen=True)
class Outcome:
    """What two runs of the same script share, whatever happened around them."""

    valid: bool
    failure_mode: str
    metrics: Mapping[str, Any]
    final_states: Mapping[str, UnitState]
    rounds: int
    trees: tuple[tuple[int, str, int | None, tuple[str, ...]], ...]
    columns: tuple[Column, ...]
    history: tuple[tuple[str, int | None, str], ...]


def outcome_of(evidence: Evidence) -> Outcome:
    """The comparable part."""
    results = evidence.results
    return Outcome(
        valid=results.valid,
        failure_mode=results.failure_mode.value,
        metrics=results.metrics.model_dump() if results.metrics else {},
        final_states=results.final_states,
        rounds=len(results.rounds),
        trees=tuple(
            (entry.snapshot, entry.tree, entry.episode.step, entry.implemented)
            for entry in evidence.snapshots
        ),
        columns=tuple(map(column_of, evidence.verdicts)),
        history=history_of(evidence),
    )


def column_of(verdict: Verdict) -> Column:
    """The comparable part of a verdict."""
    return Column(
        snapshot=verdict.snapshot,
        tree=verdict.tree,
        states={unit: result.state for unit, result in verdict.results.items()},
        cases={unit: result.cases for unit, result in verdict.results.items()},
        suite={unit: result.state for unit, result in verdict.suite.items()},
        cleared=verdict.cleared,
        regressions=verdict.regressions,
        recoveries=verdict.recoveries,
        canaries_hold=bool(verdict.canaries) and all(c.held for c in verdict.canaries),
    )


def history_of(evidence: Evidence) -> tuple[tuple[str, int | None, str], ...]:
    """Kind, snapshot and unit of the trace's events on units, in the merged order."""
    return tuple(
        (event.type, event.snapshot, str(event.data.get("unit")))
        for event in evidence.trace
        if event.type in HISTORY
    )


def restored(evidence: Evidence, entry: SnapshotEntry, folder: Path) -> Path:
    """The workspace of a snapshot, restored into a new folder."""
    root = folder / f"snapshot-{entry.snapshot}"
    root.mkdir()

    async def fetch(store: MutableStore) -> None:
        task = TaskKeys(evidence.document.task.digest)
        tree = entry_tree(entry, await read_base(store, task) if entry.base else NO_BASE)
        packs = PackCache(folder / "packs")
        await packs.fetch(store, tree)
        restore(tree, packs, root)
        packs.close()

    with_store(fetch)
    return root
