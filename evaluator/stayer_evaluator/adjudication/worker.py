"""The adjudicator of one attempt: works the queue in strict order until it is drained.

Everything it decides follows from queue and verdicts: killed at any point, its successor reads
both and goes on. A verdict is created once; whoever comes second adopts the first.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import zstandard

from stayer_evaluator.adjudication.bench import Bench, BenchStopped, Restore
from stayer_evaluator.adjudication.checkpoint import Candidate, Choice, Rule, choose, threshold
from stayer_evaluator.adjudication.events import newly_released, verdict_events
from stayer_evaluator.adjudication.evidence import Evidence
from stayer_evaluator.adjudication.gate import Gate, GateState, advance, invalidated
from stayer_evaluator.adjudication.history import History
from stayer_evaluator.adjudication.ports import Places, Progress, Trace
from stayer_evaluator.adjudication.sitting import Sitting, sit
from stayer_evaluator.adjudication.tries import Tries
from stayer_evaluator.records.queue import SnapshotEntry, Writer
from stayer_evaluator.records.reports import ProgressReport
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.snapshots.manifest import Tree
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectExists, ObjectMissing, ObjectStore

_READS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Wall clock for records, a steady one for limits; both in seconds."""

    wall: Callable[[], float]
    steady: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is fixed for the trial: the gate, sizes of gold patches, how to make a bench."""

    document: TrialDocument
    gate: Gate
    gold_lines: Mapping[str, int]
    places: Places
    new_bench: Callable[[SnapshotEntry, Restore], Bench]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Worker:
    """Adjudicates; `work` returns when the episode has ended and its queue is drained."""

    task: Task
    evidence: Evidence
    store: ObjectStore
    keys: TrialKeys
    reader: QueueReader
    tries: Tries
    writer: Writer
    trace: Trace
    progress: Progress
    clock: Clock
    history: History = field(default_factory=History)
    state: GateState = field(default_factory=GateState)
    last_diff: int | None = None
    released: set[str] = field(default_factory=set)
    _drain_began: float | None = None

    async def work(self) -> History:
        """Drain the queue. Raises BenchStopped, RunnerLost, StoreError."""
        await self._read_what_is_there()
        await self._find_verdicts()
        while not self.history.finished:
            if not await self._consider():
                self.history.add(await self.reader.next())
            await self._read_what_is_there()
        return self.history

    async def _read_what_is_there(self) -> None:
        while self.history.end is None and (entry := await self.reader.poll()) is not None:
            self.history.add(entry)
        if self.history.end is not None and self._drain_began is None:
            self._drain_began = self.clock.steady()

    async def _find_verdicts(self) -> None:
        """Verdicts of an earlier life on the entries that are there."""
        limit = asyncio.Semaphore(_READS_AT_ONCE)

        async def look(number: int) -> None:
            async with limit:
                try:
                    self.history.verdicts[number] = await self._read_verdict(number)
                except ObjectMissing:
                    return

        await asyncio.gather(*(look(entry.number) for entry in self.history.snapshots))

    async def _consider(self) -> bool:
        """Settle the head of the queue; False when nothing can be settled yet."""
        found = self.history.next_verdict()
        if found is not None:
            self._adopt(found)
            return True
        waiting = self.history.waiting
        if not waiting:
            return False
        rule = self._rule()
        limit = threshold(
            self.task.gate, self.task.gold_lines, self.state.cleared, rule.min_diff_lines
        )
        heads = waiting if rule.coalesce else waiting[:1]
        choice = choose(
            [await self._candidate(entry) for entry in heads],
            rule,
            last_diff=self.last_diff,
            threshold=limit,
        )
        if choice.candidate is None:
            self.history.considered = heads[-1].number
            return True
        entry = next(entry for entry in waiting if entry.number == choice.candidate.number)
        await self._checkpoint(entry, choice, limit)
        return True

    def _rule(self) -> Rule:
        settings, limits = self.task.document.snapshots, self.task.document.timeouts
        began = self._drain_began
        late = began is not None and self.clock.steady() - began > limits.drain_seconds
        return Rule(
            every_snapshot=settings.every_snapshot,
            min_diff_lines=settings.min_diff_lines,
            coalesce=settings.coalesce or late,
        )

    async def _candidate(self, entry: SnapshotEntry) -> Candidate:
        try:
            size = await self.evidence.diff_lines(entry, self.history.snapshots[0].number)
        except (CorruptObject, ObjectMissing):
            size = 0  # the sitting finds out and says so
        return Candidate(
            number=entry.number,
            snapshot=entry.snapshot,
            diff_lines=size,
            last=self.history.is_last(entry),
        )

    async def _checkpoint(self, entry: SnapshotEntry, choice: Choice, limit: int) -> None:
        """Adjudicate one snapshot and make its verdict durable, or adopt another's."""
        started = self.clock.wall()
        last = self.history.is_last(entry)
        lost = not await self.tries.begin(entry.number)
        logs: list[tuple[str, bytes]] = []
        if lost:
            sitting = self._given_up("grader_lost", last)
        else:
            sitting = await self._sit(entry, last, logs)
        assert choice.candidate is not None
        assert choice.trigger is not None
        verdict = Verdict(
            number=entry.number,
            snapshot=entry.snapshot,
            tree=entry.tree,
            trigger=choice.trigger,
            diff_lines=choice.candidate.diff_lines,
            threshold=limit,
            last=last,
            coalesced=choice.coalesced,
            results=dict(sitting.checkpoint.results),
            cleared=sitting.checkpoint.cleared,
            regressions=sitting.checkpoint.regressions,
            recoveries=sitting.checkpoint.recoveries,
            suite=dict(sitting.suite),
            canaries=sitting.canaries,
            tamper=sitting.tamper,
            grader_lost=lost,
            writer=self.writer,
            started=started,
            ended=self.clock.wall(),
            environment={**self.task.environment, **sitting.environment},
        )
        await self._publish(verdict, logs)

    async def _publish(self, verdict: Verdict, logs: list[tuple[str, bytes]]) -> None:
        try:
            await self.store.create(self.keys.verdict(verdict.number), verdict.to_bytes())
        except ObjectExists:
            self._adopt(await self._read_verdict(verdict.number))
            return
        for kind, data in verdict_events(verdict, newly_released(verdict, self.released)):
            self.trace.add(kind, verdict.snapshot, **data)
        self._adopt(verdict)
        await self._keep_logs(verdict, logs)
        await self.trace.flush()

    async def _sit(
        self, entry: SnapshotEntry, last: bool, logs: list[tuple[str, bytes]]
    ) -> Sitting:
        try:
            tree: Tree = await self.evidence.tree(entry.number)
        except (CorruptObject, ObjectMissing):
            return self._given_up("evidence", last)
        restore = self.evidence.restorer(tree, self.task.places.workspace)
        bench = self.task.new_bench(entry, restore)
        try:
            sitting = await sit(bench, self.task.gate, self.state, last=last)
        except BenchStopped:
            await self.tries.forgive(entry.number)
            raise
        logs += bench.logs
        return sitting

    def _given_up(self, why: str, last: bool) -> Sitting:
        checkpoint = invalidated(self.task.gate, self.state, {}, why, last=last)
        suite = {u: checkpoint.results[u] for u in sorted(self.task.gate.tested) if last}
        return Sitting(checkpoint=checkpoint, suite=suite, canaries=())

    def _adopt(self, verdict: Verdict) -> None:
        self.history.verdicts[verdict.number] = verdict
        self.history.considered = verdict.number
        self.state = advance(self.state, verdict.results, verdict.cleared, self.task.gate.tested)
        self.last_diff = verdict.diff_lines
        self.released.update(newly_released(verdict, self.released))
        self.progress.report(self._report())

    def _report(self) -> ProgressReport:
        verdicts = tuple(self.history.in_order())
        tested = self.task.gate.tested
        return ProgressReport(
            trial=self.task.document.trial,
            role="b",
            incarnation=self.writer.incarnation,
            snapshots_adjudicated=len(verdicts),
            queue_depth=self.history.depth,
            units_cleared=sum(unit in tested for unit in self.state.cleared),
            units_total=len(tested),
            regressions=sum(len(verdict.regressions) for verdict in verdicts),
            recoveries=sum(len(verdict.recoveries) for verdict in verdicts),
        )

    async def _keep_logs(self, verdict: Verdict, logs: list[tuple[str, bytes]]) -> None:
        """Tails of what the runs of units that did not pass printed, for people."""
        if not logs:
            return
        name = f"adjudication-{verdict.number:08d}-{self.writer.nonce}.log.zst"
        await self.store.create(self.keys.log(name), packed_logs(logs))

    async def _read_verdict(self, number: int) -> Verdict:
        return Verdict.from_bytes(await self.store.get(self.keys.verdict(number)))


def packed_logs(logs: Iterable[tuple[str, bytes]]) -> bytes:
    """Named logs one after the other, zstd-compressed."""
    text = b"".join(b"=== %s ===\n%s\n" % (name.encode(), log) for name, log in logs)
    return zstandard.ZstdCompressor().compress(text)
