"""What the sidecars of a pod do in a small deterministic world, one step a tick.

They use the real queue, so what an incarnation leaves is what the next one finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor, SnapshotEntry, Writer
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.results import Metrics, TrialResults
from stayer_evaluator.records.task import Inventory, InventoryUnit
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import Fenced, QueueReader, QueueWriter
from stayer_evaluator.storage.store import ObjectExists
from stayer_operator.adapters.memory_cluster import MemoryCluster
from stayer_operator.api import names

NAMESPACE = "lab"
START = 1_800_000_000.0
SNAPSHOTS = 4  # of every episode

Object = dict[str, Any]


def name_of(document: Object) -> str:
    return str(document["metadata"]["name"])


def sidecar_of(pod: Object) -> str:
    """The name of its sidecar's container."""
    is_agent = pod["metadata"]["labels"][names.LABEL_ROLE] == "agent"
    return "recorder" if is_agent else "adjudicator"


@dataclass(frozen=True)
class PodEnd:
    """How the containers of a pod end."""

    exit_code: int = 0
    reason: str = "Completed"
    said: TerminationMessage | None = None
    sidecar_code: int = 0
    message: str = ""


@dataclass
class Memory:
    """What a sidecar process knows; gone with its pod."""

    writer: QueueWriter | None = None
    position: int = 0
    ticks: int = 0


class Sidecars:
    """The sidecars of all pods that run."""

    def __init__(self, cluster: MemoryCluster, store: MemoryStore) -> None:
        self._cluster = cluster
        self._store = store
        self._memories: dict[str, Memory] = {}

    def ticks_of(self, pod: Object) -> int:
        """How long its sidecar has worked."""
        memory = self._memories.get(pod["metadata"]["uid"])
        return memory.ticks if memory is not None else 0

    def forget(self, pod: Object) -> None:
        """Its process is gone."""
        self._memories.pop(pod["metadata"]["uid"], None)

    async def work(self, pod: Object) -> PodEnd | None:
        """One step; how the pod ends, if it does."""
        memory = self._memories.setdefault(pod["metadata"]["uid"], Memory())
        memory.ticks += 1
        trial = self._cluster.find(
            names.TRIAL_KIND, NAMESPACE, pod["metadata"]["labels"][names.LABEL_TRIAL]
        )
        if trial is None:
            return None
        if trial["spec"]["kind"] == TrialKind.INVENTORY:
            return await self._take_inventory(trial)
        if sidecar_of(pod) == "recorder":
            return await self._record(pod, trial, memory)
        return await self._adjudicate(trial, memory)

    async def _record(self, pod: Object, trial: Object, memory: Memory) -> PodEnd | None:
        incarnation = int(name_of(pod).rpartition("-")[2])
        writer = Writer(incarnation=incarnation, nonce=pod["metadata"]["uid"])
        if memory.writer is None:
            keys = TrialKeys(trial["spec"]["prefix"])
            memory.writer = await QueueWriter.begin(self._store, keys, writer, START)
        queue = memory.writer
        last = queue.last_snapshot
        taken = last.snapshot + 1 if last is not None else 0
        if queue.end is not None:
            end = TerminationMessage(
                kind="end", failure_mode=queue.end.failure_mode, rounds=1, snapshots_taken=taken
            )
            return PodEnd(said=end)
        try:
            if taken < SNAPSHOTS:
                await queue.append(lambda number: _snapshot(number, taken, writer))
            else:
                await queue.append(lambda number: _end(number, writer, EpisodeCursor(step=taken)))
        except Fenced:
            return PodEnd(1, "Error", TerminationMessage(kind="fenced"), sidecar_code=3)
        return None

    async def _adjudicate(self, trial: Object, memory: Memory) -> PodEnd | None:
        if memory.ticks % 2:
            return None  # slower than the agent: something is left to drain
        keys = TrialKeys(trial["spec"]["prefix"])
        reader = QueueReader(self._store, keys, memory.position)
        entry = await reader.poll()
        memory.position = reader.position
        if isinstance(entry, SnapshotEntry):
            await self._store.create(keys.verdict(entry.number), b"passed")
        if not isinstance(entry, EndEntry):
            return None
        results = _results(trial, entry.failure_mode, self._store)
        try:
            await self._store.create(keys.results, results.to_bytes())
        except ObjectExists:
            results = TrialResults.from_bytes(await self._store.get(keys.results))
        return PodEnd(said=_hint(results))

    async def _take_inventory(self, trial: Object) -> PodEnd:
        digest = trial["spec"]["task"]["digest"]
        unit = InventoryUnit(cases=("test_a",), selectable=True, finder="folder")
        inventory = Inventory(
            task=trial["spec"]["task"]["name"],
            digest=digest,
            accepted=True,
            suite="pytest",
            units={"lexer": unit, "grammar": unit},
            base_manifest="d" * 64,
        )
        await self._store.create(TaskKeys(digest).inventory, inventory.to_bytes())
        results = _results(trial, FailureMode.NONE, self._store)
        await self._store.create(TrialKeys(trial["spec"]["prefix"]).results, results.to_bytes())
        return PodEnd(said=TerminationMessage(kind="results", valid=True, accepted=True))


def _snapshot(number: int, snapshot: int, writer: Writer) -> SnapshotEntry:
    return SnapshotEntry(
        number=number,
        snapshot=snapshot,
        writer=writer,
        time=START,
        episode=EpisodeCursor(step=snapshot),
        base="",
        tree=f"{snapshot:064x}",
        files=snapshot,
        bytes=snapshot,
    )


def _end(number: int, writer: Writer, cursor: EpisodeCursor) -> EndEntry:
    return EndEntry(
        number=number, writer=writer, time=START, failure_mode=FailureMode.NONE, episode=cursor
    )


def _hint(results: TrialResults) -> TerminationMessage:
    """What an adjudicator says of its results when it ends."""
    metrics = results.metrics
    return TerminationMessage(
        kind="results",
        valid=results.valid,
        failure_mode=results.failure_mode,
        resolved=metrics.resolved if metrics else None,
        units_cleared=metrics.units_cleared if metrics else None,
        units_total=metrics.units_total if metrics else None,
        snapshots_taken=results.snapshots_taken,
        snapshots_adjudicated=results.snapshots_adjudicated,
    )


def _results(trial: Object, failure_mode: FailureMode, store: MemoryStore) -> TrialResults:
    """The same however many incarnations it took: only snapshots count."""
    spec = trial["spec"]
    keys = TrialKeys(spec["prefix"])
    verdicts = sum(1 for key in store.objects if key.startswith(keys.verdict(0)[:-8]))
    attempt = spec["kind"] == TrialKind.ATTEMPT
    solved = spec.get("agent") == "oracle" and verdicts == SNAPSHOTS
    return TrialResults(
        kind=TrialKind(spec["kind"]),
        namespace=NAMESPACE,
        run=spec["runName"],
        trial=trial["metadata"]["name"],
        task=spec["task"]["name"],
        task_digest=spec["task"]["digest"],
        agent=spec.get("agent"),
        model=spec.get("model"),
        loop=spec.get("loopProfile"),
        attempt=spec.get("attempt", 1),
        valid=True,
        failure_mode=failure_mode,
        metrics=_metrics(solved, verdicts) if attempt else None,
        snapshots_taken=verdicts,
        snapshots_adjudicated=verdicts,
    )


def _metrics(solved: bool, verdicts: int) -> Metrics:
    return Metrics(
        resolved=solved,
        tpr=1.0 if solved else 0.0,
        tpr_ungated=None,
        depth=1.0 if solved else 0.0,
        reg_events=0,
        recoveries=0,
        reg_rate=None,
        reg_final=None,
        rounds=1,
        sigma=(),
        completion_order=(),
        order_violations=0,
        order_diff=0,
        kendall_tau=None,
        units_cleared=2 if solved else 0,
        units_total=2,
        cases_passed=verdicts,
        cases_total=verdicts,
    )
