"""The end of a trial: its whole trace in one object, its results in another; create-only."""

from collections.abc import Iterable, Sequence

import zstandard

from stayer_evaluator.adjudication.events import newly_released, verdict_events
from stayer_evaluator.adjudication.gate import Gate
from stayer_evaluator.adjudication.history import History
from stayer_evaluator.adjudication.ports import Trace
from stayer_evaluator.episode.trace import decode_segment
from stayer_evaluator.records.outcomes import FailureMode, TrialKind, UnitState
from stayer_evaluator.records.queue import Writer
from stayer_evaluator.records.results import Metrics, TrialResults
from stayer_evaluator.records.task import Inventory, TaskRecord
from stayer_evaluator.records.trace import TraceEvent
from stayer_evaluator.records.trial import TrialDocument
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.scoring.metrics import score
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.store import ObjectExists, ObjectMissing, ObjectStore

_NO_SCORE = frozenset({FailureMode.INFRA_ERROR, FailureMode.CANCELLED})


def trial_results(
    document: TrialDocument,
    record: TaskRecord,
    inventory: Inventory,
    history: History,
    gate: Gate,
    user_namespace: str,
) -> TrialResults:
    """The result document of a drained queue (evaluation.md §6, §10.4, §10.6).

    Not valid, and without metrics: no verdict at all, a unit that is still invalid at the last
    snapshot, or an episode that ended for an infrastructure's fault or was cancelled.
    """
    end = history.end
    assert end is not None, "only a drained queue is scored"
    verdicts = tuple(history.in_order())
    mode, message = _outcome(end.failure_mode, end.message, verdicts)
    valid = mode not in _NO_SCORE
    rounds = len(end.episode.rounds) or end.episode.round
    metrics: Metrics | None = None
    if valid:
        metrics = score(
            record.units, record.reference_order, inventory, verdicts, history.snapshots, rounds
        )
    final = verdicts[-1].results if verdicts else {}
    canaries = [canary for verdict in verdicts for canary in verdict.canaries]
    return TrialResults(
        kind=TrialKind.ATTEMPT,
        namespace=document.namespace,
        run=document.run,
        trial=document.trial,
        task=document.task.name,
        task_digest=document.task.digest,
        agent=document.agent.name if document.agent else None,
        model=document.model,
        loop=document.loop.name,
        attempt=document.attempt,
        valid=valid,
        failure_mode=mode,
        message=message,
        metrics=metrics,
        final_states={u: final[u].state for u in gate.graph.order if u in final},
        rounds=end.episode.rounds,
        snapshots_taken=len(history.snapshots),
        snapshots_adjudicated=len(verdicts),
        snapshots_coalesced=sum(len(verdict.coalesced) for verdict in verdicts),
        infra_restarts=end.episode.infra_restarts,
        canaries_run=len(canaries),
        canaries_failed=sum(not canary.held for canary in canaries),
        tamper=tuple(dict.fromkeys(reason for v in verdicts for reason in v.tamper)),
        test_visibility=document.test_visibility,
        network=document.network,
        user_namespace=user_namespace,
        started=history.epochs[0].time if history.epochs else None,
        ended=end.time,
        bytes_stored=history.bytes_stored,
    )


def _outcome(
    mode: FailureMode, message: str, verdicts: Sequence[Verdict]
) -> tuple[FailureMode, str]:
    """Failure mode of the trial: the episode's, unless adjudication itself decides it."""
    if mode in _NO_SCORE:
        return mode, message
    if not verdicts:
        return FailureMode.INFRA_ERROR, "no snapshot was taken"
    states = {unit: result.state for unit, result in verdicts[-1].results.items()}
    invalid = sorted(unit for unit, state in states.items() if state == UnitState.INVALID)
    if invalid:
        why = verdicts[-1].results[invalid[0]].evidence or "unknown"
        return (
            FailureMode.INFRA_ERROR,
            f"the last snapshot has no believable result for {len(invalid)} units ({why})",
        )
    if mode == FailureMode.NONE and UnitState.TIMEOUT in states.values():
        return FailureMode.TEST_TIMEOUT, message
    return mode, message


async def read_segments(
    store: ObjectStore, keys: TrialKeys, writers: Iterable[str]
) -> list[TraceEvent]:
    """All events of the writers' series; each is dense from 0."""
    events: list[TraceEvent] = []
    for writer in dict.fromkeys(writers):
        segment = 0
        while True:
            try:
                data = await store.get(keys.trace(writer, segment))
            except ObjectMissing:
                break
            events += decode_segment(data)
            segment += 1
    return events


def writer_names(history: History) -> list[str]:
    """Every series that may exist: recorders by their epochs, adjudicators by their verdicts."""
    recorders = [_name("recorder", epoch.writer) for epoch in history.epochs]
    return recorders + [_name("adjudicator", v.writer) for v in history.in_order()]


def complete_trace(trace: Trace, history: History, events: Iterable[TraceEvent]) -> None:
    """Note the events of verdicts whose maker died before its trace was durable."""
    seen = {e.data.get("number") for e in events if e.type == "checkpoint"}
    released: set[str] = set()
    for verdict in history.in_order():
        fresh = newly_released(verdict, released)
        released.update(fresh)
        if verdict.number not in seen:
            for kind, data in verdict_events(verdict, fresh):
                trace.add(kind, verdict.snapshot, **data)


def merged(events: Iterable[TraceEvent]) -> bytes:
    """The one stream: ordered by snapshot, writer, sequence (evaluation.md §8).

    An event without a snapshot belongs where its writer stood: to the last snapshot that it named.
    """
    placed = []
    position: dict[str, int] = {}
    for event in sorted(events, key=lambda event: (event.writer, event.sequence)):
        at = event.snapshot if event.snapshot is not None else position.get(event.writer, -1)
        position[event.writer] = at
        placed.append(((at, _rank(event.writer), event.writer, event.sequence), event))
    lines = (event.to_bytes() + b"\n" for _, event in sorted(placed, key=lambda pair: pair[0]))
    return zstandard.ZstdCompressor(level=9).compress(b"".join(lines))


async def create_or_read(store: ObjectStore, key: str, data: bytes) -> bytes:
    """Create the object; the bytes that are there in the end, whoever wrote them."""
    try:
        await store.create(key, data)
    except ObjectExists:
        return await store.get(key)
    return data


def _rank(writer: str) -> int:
    """Recorders first: a snapshot is taken before it is adjudicated."""
    return 0 if writer.startswith("recorder-") else 1


def _name(role: str, writer: Writer) -> str:
    return f"{role}-{writer.incarnation}-{writer.nonce}"
