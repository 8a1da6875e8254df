"""A TrialView from memory, and from the store only where a rule could need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pydantic

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor, SnapshotEntry
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.storage.dense import dense_length
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectMissing, StoreError
from stayer_operator.api import names
from stayer_operator.core.observed import NodeView, ObjectKey, PodView, RunObject, TrialObject
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.needs import RunIntent, run_intent
from stayer_operator.core.trial.evidence import Need, needs
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.spec import parse_trial_spec
from stayer_operator.core.trial.status import parse_trial_status
from stayer_operator.core.trial.view import QueueFact, ResultsFact, RoleView, TrialView
from stayer_operator.ports import Evidence, Observed, Telemetry
from stayer_operator.reconcile.ledger import Ledger, ParsedTrial, TrialNotes

INTENTS = 16  # runs whose intents are kept: few go on at once


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGathering:
    """Where views of trials come from. `intents`: of runs, as their newest sights have them."""

    observed: Observed
    evidence: Evidence
    telemetry: Telemetry
    ledger: Ledger
    pod_settings: PodSettings
    settings: TrialSettings
    intents: dict[str, tuple[RunObject, RunIntent]] = field(default_factory=dict)

    async def gather(self, trial: TrialObject, admitted: bool, now: float) -> TrialView:
        """The view of a Trial. Raises StoreError when evidence is needed and cannot be read."""
        view = self.look(trial, admitted, now)
        while wanted := needs(view):
            view = await self._read(view, wanted)
        return view

    def look(self, trial: TrialObject, admitted: bool, now: float) -> TrialView:
        """What memory alone shows."""
        name, uid, key = trial.name, trial.uid, trial.key
        notes = self.ledger.find(uid)
        parsed = _parse(trial, notes)
        spec, status = parsed.spec, parsed.status
        if notes is None:
            notes = self.ledger.meet(uid, status, self.observed.witnessed(uid))
        pods = [pod for pod in self.observed.pods(key) if pod.owner_uid == uid]
        notes.parsed = parsed if pods or admitted else None
        agent = None
        if spec.kind is not TrialKind.INVENTORY:
            agent = _role_view(name, Role.AGENT, status.agent_incarnation, pods, notes)
        return TrialView(
            trial=trial,
            spec=spec,
            status=status,
            run=self._intent(trial),
            admitted=admitted,
            agent=agent,
            adjudicator=_role_view(
                name, Role.ADJUDICATOR, status.adjudicator_incarnation, pods, notes
            ),
            now=now,
            pod_settings=self.pod_settings,
            settings=self.settings,
            nodes=self._nodes(pods),
            progress=self.observed.progress(key),
            written_at=notes.written_at,
            swept_at=notes.swept_at,
        )

    def _intent(self, trial: TrialObject) -> RunIntent | None:
        run = self.observed.run(trial.run_key)
        if run is None or run.uid != trial.run_uid:
            return None
        known = self.intents.get(run.uid)
        if known is not None and known[0] is run:
            return known[1]
        if len(self.intents) >= INTENTS:
            self.intents.clear()
        intent = run_intent(run.manifest)
        self.intents[run.uid] = (run, intent)
        return intent

    def _nodes(self, pods: Iterable[PodView]) -> dict[str, NodeView]:
        """Nodes matter only to pods that are being deleted."""
        nodes = {}
        for pod in pods:
            if pod.deletion is not None and (node := self.observed.node(pod.node)) is not None:
                nodes[node.name] = node
        return nodes

    async def _read(self, view: TrialView, wanted: frozenset[Need]) -> TrialView:
        keys = TrialKeys(view.spec.prefix)
        try:
            if Need.RESULTS in wanted:
                view = replace(view, results=await self._results(keys))
            if Need.QUEUE in wanted:
                view = replace(view, queue=await self._queue(keys))
        except StoreError:
            self.telemetry.store_failed("get")
            raise
        return view

    async def _results(self, keys: TrialKeys) -> ResultsFact:
        try:
            data = await self.evidence.get(keys.results)
        except ObjectMissing:
            return ResultsFact(found=None)
        try:
            return ResultsFact(found=TrialResults.from_bytes(data))
        except pydantic.ValidationError as error:
            raise CorruptObject(f"{keys.results}: {error}") from error

    async def _queue(self, keys: TrialKeys) -> QueueFact:
        """The last entry and, behind it, the newest snapshot."""
        length = await dense_length(self.evidence, keys.queue)
        reader = QueueReader(self.evidence, keys)
        end: EndEntry | None = None
        for number in range(length - 1, -1, -1):
            entry = await reader.read(number)
            if isinstance(entry, EndEntry):
                end = entry
                break
            if isinstance(entry, SnapshotEntry):
                return QueueFact(next_number=length, end=None, cursor=entry.episode)
        return QueueFact(
            next_number=length, end=end, cursor=end.episode if end else EpisodeCursor()
        )


def _parse(trial: TrialObject, notes: TrialNotes | None) -> ParsedTrial:
    """Views are never changed but replaced: the same one means the same. Specs are immutable."""
    known = notes.parsed if notes is not None else None
    if known is not None and known.trial is trial:
        return known
    return ParsedTrial(
        trial=trial,
        spec=known.spec if known is not None else parse_trial_spec(trial.spec),
        status=parse_trial_status(trial.status),
    )


def orphan_pods(observed: Observed, key: ObjectKey) -> tuple[PodView, ...]:
    """Pods of a Trial that is not there."""
    return tuple(pod for pod in observed.pods(key) if pod.owner_uid)


def _role_view(
    trial: str, role: Role, recorded: int, pods: Sequence[PodView], notes: TrialNotes
) -> RoleView:
    mine = [pod for pod in pods if pod.role is role]
    incarnation, current = recorded, None
    for pod in mine:
        # A pod of a later incarnation proves a status that our copy does not show yet.
        if pod.incarnation >= incarnation:
            incarnation, current = pod.incarnation, pod
    name = names.pod_name(trial, role, incarnation) if current is None else current.name
    seen = notes.seen.get(name)
    if current is not None and seen is not current:
        _remember(notes, role, current)
    return RoleView(
        role=role,
        incarnation=incarnation,
        pod=current,
        last_seen=seen if current is None else None,
        older=tuple([pod for pod in mine if pod is not current]) if mine else (),
        posted_at=notes.posted.get(name),
        tried_at=notes.tried.get(name),
        may_exist=incarnation <= notes.floor[role],
    )


def _remember(notes: TrialNotes, role: Role, pod: PodView) -> None:
    """Keep the last sight of the newest pod of each role only."""
    if pod.name not in notes.seen:
        stale = [name for name, seen in notes.seen.items() if seen.role is role]
        for name in stale:
            del notes.seen[name]
    notes.seen[pod.name] = pod
