"""Runs `core/run/admission.py` over everything observed, and remembers its last answer.

Passes are many and changes few: a Trial is looked at when somebody says that it may have changed,
and the answer stands while nothing that it was made from has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from stayer_operator.api.conditions import (
    ACTIVE_TRIAL_PHASES,
    TERMINAL_TRIAL_PHASES,
    RunCondition,
)
from stayer_operator.core.observed import ObjectKey, PodView, RunObject, TrialObject
from stayer_operator.core.projection import parse_time
from stayer_operator.core.run.admission import (
    Admission,
    AdmissionRun,
    AdmissionTrial,
    AdmissionView,
    Wait,
    admit,
)
from stayer_operator.core.run.needs import run_intent
from stayer_operator.ports import Observed
from stayer_operator.reconcile.ledger import Ledger, TrialNotes

_TERMINAL = frozenset(phase.value for phase in TERMINAL_TRIAL_PHASES)
_ACTIVE = frozenset(phase.value for phase in ACTIVE_TRIAL_PHASES)
_NOBODY = Admission(admitted=frozenset(), waits={}, wake_after=None)


@dataclass(frozen=True, slots=True)
class _Sight:
    """What admission made of a Trial, and from what."""

    trial: TrialObject
    pods: Sequence[PodView]
    posted: bool
    made: AdmissionTrial


@dataclass(slots=True)
class Admissions:
    """The newest answer, by Trial key."""

    observed: Observed
    ledger: Ledger
    _answer: Admission = _NOBODY
    _until: float = inf  # when the answer may change by itself
    _runs: tuple[AdmissionRun, ...] = ()  # that the answer was made from
    _alive: frozenset[str] = frozenset()  # keys of the runs of these Trials
    _sights: dict[ObjectKey, _Sight] = field(default_factory=dict)  # of Trials that have not ended
    _stale: set[ObjectKey] = field(default_factory=set)

    def look_again(self, trial: ObjectKey) -> None:
        """The Trial, its pods or the notes about it may have changed."""
        self._stale.add(trial)

    def look_at_all(self) -> None:
        """Anything may have changed."""
        self._stale.update(self._sights, (trial.key for trial in self.observed.trials()))

    def decide(self, now: float) -> tuple[tuple[ObjectKey, ...], float | None]:
        """Decide anew. Returns the Trials that are admitted now and were not before, and in how
        many seconds the answer may change by itself.
        """
        changed = self._look()
        runs = tuple(_run(run) for run in self.observed.runs() if _text(run.key) in self._alive)
        before = self._answer.admitted
        if changed or runs != self._runs or now >= self._until:
            self._runs = runs
            self._answer = admit(self._view(now))
            wake_after = self._answer.wake_after
            self._until = inf if wake_after is None else now + wake_after
        fresh = sorted(self._answer.admitted - before)
        return tuple(
            _key(text) for text in fresh
        ), None if self._until == inf else self._until - now

    @property
    def size(self) -> int:
        """Trials that the last answer was about."""
        return len(self._sights)

    def is_admitted(self, trial: ObjectKey) -> bool:
        """It may have its pods."""
        return _text(trial) in self._answer.admitted

    def wait(self, trial: ObjectKey) -> Wait | None:
        """Why it may not; None when it may, or holds pods."""
        return self._answer.waits.get(_text(trial))

    def _view(self, now: float) -> AdmissionView:
        return AdmissionView(
            runs=self._runs,
            trials=tuple(sight.made for sight in self._sights.values()),
            now=now,
            before=self._answer.admitted,
        )

    def _look(self) -> bool:
        """Look at what may have changed; whether something has, for admission."""
        stale, self._stale = self._stale, set()
        looks = [self._look_at(key) for key in stale]
        if changed := any(looks):
            self._alive = frozenset(sight.made.run for sight in self._sights.values())
        return changed

    def _look_at(self, key: ObjectKey) -> bool:
        before = self._sights.get(key)
        trial = self.observed.trial(key)
        if trial is None or trial.deleted or trial.status.get("phase") in _TERMINAL:
            return self._sights.pop(key, None) is not None
        pods = self.observed.pods(key)
        posted = _is_posted(self.ledger.find(trial.uid), trial.status)
        if before is None or before.trial.uid != trial.uid:
            self._sights[key] = _Sight(
                trial, pods, posted, _make(trial, pods, posted, _shape(trial))
            )
            return True
        if before.trial is trial and before.posted == posted and before.pods == pods:
            return False
        made = _make(trial, pods, posted, before.made.shape)
        self._sights[key] = _Sight(trial, pods, posted, made)
        return before.made != made


def _is_posted(notes: TrialNotes | None, status: Mapping[str, Any]) -> bool:
    """A pod was created that nobody has seen yet."""
    return notes is not None and any(
        name not in notes.seen and _incarnation(name) >= _recorded(name, status)
        for name in notes.posted
    )


def _make(
    trial: TrialObject, observed: Sequence[PodView], posted: bool, shape: str
) -> AdmissionTrial:
    spec, status = trial.spec, trial.status
    pods = [pod for pod in observed if pod.owner_uid == trial.uid and _is_current(pod, status)]
    holds = status.get("phase") in _ACTIVE or bool(pods) or posted
    return AdmissionTrial(
        key=_text(trial.key),
        run=_text(trial.run_key),
        kind=trial.kind,
        model=spec.get("model") or "",
        shape=shape,
        expected_seconds=float(spec.get("expectedSeconds") or 0),
        holds=holds,
        starting=holds and any(pod.scheduled_since is None for pod in pods),
        unschedulable=any(pod.is_unschedulable for pod in pods),
        not_before=parse_time(status.get("notBefore")) or 0.0,
    )


def _shape(trial: TrialObject) -> str:
    """Pairs with equal kind, requests and placement have equal shapes; specs do not change."""
    templates = json.dumps(trial.spec.get("podTemplates") or {}, sort_keys=True)
    return sys.intern(f"{trial.namespace}/{trial.kind.value}/{templates}")  # few, of many Trials


def _run(run: RunObject) -> AdmissionRun:
    spec: Mapping[str, Any] = run.manifest.get("spec") or {}
    intent = run_intent(run.manifest)
    limits = spec.get("modelLimits") or ()
    return AdmissionRun(
        key=_text(run.key),
        created=run.created,
        priority=spec.get("priority") or 0,
        parallelism=spec.get("parallelism") or DEFAULT_PARALLELISM,
        model_limits={
            str(limit.get("model")): int(limit.get("parallelism") or 0) for limit in limits
        },
        suspended=intent.suspend,
        cancelled=intent.cancel,
        admissible=_is_accepted(run.manifest.get("status") or {}),
    )


DEFAULT_PARALLELISM = 4  # the schema's; the API server writes it into every run


def _is_accepted(status: Mapping[str, Any]) -> bool:
    """Trials exist only where the run was accepted once; a spec that was made wrong since then
    admits nobody until it is mended.
    """
    for condition in status.get("conditions") or ():
        if condition.get("type") == RunCondition.ACCEPTED:
            return bool(condition.get("status") != "False")
    return True


def _is_current(pod: PodView, status: Mapping[str, Any]) -> bool:
    return pod.incarnation >= _recorded(pod.name, status) and not pod.is_terminal


def _recorded(pod_name: str, status: Mapping[str, Any]) -> int:
    role = pod_name.rsplit("-", 2)[-2]
    field_name = "agentIncarnation" if role == "a" else "adjudicatorIncarnation"
    return int(status.get(field_name) or 1)


def _incarnation(pod_name: str) -> int:
    return int(pod_name.rpartition("-")[2])


def _text(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"


def _key(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return ObjectKey(namespace, name)
