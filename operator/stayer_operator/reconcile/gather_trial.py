"""A TrialView from memory, and from the store only where a rule could need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pydantic

from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor, SnapshotEntry
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.storage.dense import dense_length
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.store import ObjectMissing, StoreError
from stayer_operator.api import names
from stayer_operator.core.observed import NodeView, ObjectKey, PodView, TrialObject
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.needs import RunIntent, run_intent
from stayer_operator.core.trial.evidence import Need, needs
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.spec import parse_trial_spec
from stayer_operator.core.trial.status import parse_trial_status
from stayer_operator.core.trial.view import QueueFact, ResultsFact, RoleView, TrialView
from stayer_operator.ports import Evidence, Observed, Telemetry
from stayer_operator.reconcile.ledger import Ledger, ParsedTrial, TrialNotes


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialGathering:
    """Where views of trials come from."""

    observed: Observed
    evidence: Evidence
    telemetry: Telemetry
    ledger: Ledger
    pod_settings: PodSettings
    settings: TrialSettings

    async def gather(self, trial: TrialObject, admitted: bool, now: float) -> TrialView:
        """The view of a Trial. Raises StoreError when evidence is needed and cannot be read."""
        view = self.look(trial, admitted, now)
        while wanted := needs(view):
            view = await self._read(view, wanted)
        return view

    def look(self, trial: TrialObject, admitted: bool, now: float) -> TrialView:
        """What memory alone shows."""
        parsed = _parse(trial, self.ledger.find(trial.uid))
        spec, status = parsed.spec, parsed.status
        notes = self.ledger.meet(trial.uid, status, self.observed.witnessed(trial.uid))
        pods = [pod for pod in self.observed.pods(trial.key) if pod.owner_uid == trial.uid]
        notes.parsed = parsed if pods else None
        roles = {
            role: _role_view(trial.name, role, status.incarnation(role), pods, notes)
            for role in spec.roles
        }
        return TrialView(
            trial=trial,
            spec=spec,
            status=status,
            run=self._intent(trial),
            admitted=admitted,
            agent=roles.get(Role.AGENT),
            adjudicator=roles[Role.ADJUDICATOR],
            now=now,
            pod_settings=self.pod_settings,
            settings=self.settings,
            nodes=self._nodes(pods),
            progress=self.observed.progress(trial.key),
            written_at=notes.written_at,
            swept_at=notes.swept_at,
        )

    def _intent(self, trial: TrialObject) -> RunIntent | None:
        run = self.observed.run(trial.run_key)
        if run is None or run.uid != trial.run_uid:
            return None
        return run_intent(run.manifest)

    def _nodes(self, pods: Iterable[PodView]) -> dict[str, NodeView]:
        """Nodes matter only to pods that are being deleted."""
        found = (self.observed.node(pod.node) for pod in pods if pod.deletion is not None)
        return {node.name: node for node in found if node is not None}

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
    # A pod of a later incarnation proves a status that our copy does not show yet.
    incarnation = max([recorded, *(pod.incarnation for pod in mine)])
    name = names.pod_name(trial, role, incarnation)
    current = next((pod for pod in mine if pod.name == name), None)
    if current is not None:
        _remember(notes, role, current)
    return RoleView(
        role=role,
        incarnation=incarnation,
        pod=current,
        last_seen=notes.seen.get(name) if current is None else None,
        older=tuple(pod for pod in mine if pod.name != name),
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
