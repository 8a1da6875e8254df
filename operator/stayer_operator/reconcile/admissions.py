"""Runs `core/run/admission.py` over everything observed, and remembers its last answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from stayer_operator.reconcile.ledger import Ledger

_TERMINAL = frozenset(phase.value for phase in TERMINAL_TRIAL_PHASES)
_ACTIVE = frozenset(phase.value for phase in ACTIVE_TRIAL_PHASES)
Noted = tuple[tuple[str, ...], tuple[str, ...]]
_NOBODY = Admission(admitted=frozenset(), waits={}, wake_after=None)


@dataclass(frozen=True, slots=True)
class _Sight:
    """What admission made of a Trial, and of what. `noted`: names of pods that this process
    posted, and of those that it saw.
    """

    trial: TrialObject
    pods: Sequence[PodView]
    noted: Noted
    made: AdmissionTrial

    def still_holds(self, trial: TrialObject, pods: Sequence[PodView], noted: Noted) -> bool:
        """Views are never changed but replaced, so the same ones mean the same."""
        return self.trial is trial and self.noted == noted and self.pods == pods


@dataclass(slots=True)
class Admissions:
    """The newest answer, by Trial key."""

    observed: Observed
    ledger: Ledger
    _answer: Admission = _NOBODY
    _sights: dict[str, _Sight] = field(default_factory=dict)  # by Trial UID

    def decide(self, now: float) -> tuple[tuple[ObjectKey, ...], float | None]:
        """Decide anew. Returns the Trials that are admitted now and were not before, and in how
        many seconds the answer may change by itself.
        """
        before = self._answer.admitted
        self._answer = admit(self._view(now))
        fresh = sorted(self._answer.admitted - before)
        return tuple(_key(text) for text in fresh), self._answer.wake_after

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
        before, self._sights = self._sights, {}
        for trial in self.observed.trials():
            if trial.status.get("phase") not in _TERMINAL and not trial.deleted:
                self._sights[trial.uid] = self._look(trial, before.get(trial.uid))
        trials = tuple(sight.made for sight in self._sights.values())
        alive = {trial.run for trial in trials}
        runs = (run for run in self.observed.runs() if _text(run.key) in alive)
        return AdmissionView(
            runs=tuple(_run(run) for run in runs),
            trials=trials,
            now=now,
            before=self._answer.admitted,
        )

    def _look(self, trial: TrialObject, before: _Sight | None) -> _Sight:
        """The last look at it where nothing has changed since: passes are many, changes few."""
        pods = self.observed.pods(trial.key)
        notes = self.ledger.find(trial.uid)
        noted = (tuple(notes.posted), tuple(notes.seen)) if notes is not None else ((), ())
        if before is not None and before.still_holds(trial, pods, noted):
            return before
        made = _make(trial, pods, noted, before)
        return _Sight(trial=trial, pods=pods, noted=noted, made=made)


def _make(
    trial: TrialObject, observed: Sequence[PodView], noted: Noted, before: _Sight | None
) -> AdmissionTrial:
    spec, status = trial.spec, trial.status
    pods = [pod for pod in observed if pod.owner_uid == trial.uid and _is_current(pod, status)]
    posted_names, seen_names = noted
    posted = any(
        name not in seen_names and _incarnation(name) >= _recorded(name, status)
        for name in posted_names
    )
    holds = status.get("phase") in _ACTIVE or bool(pods) or posted
    return AdmissionTrial(
        key=_text(trial.key),
        run=_text(trial.run_key),
        kind=trial.kind,
        model=spec.get("model") or "",
        shape=before.made.shape if before is not None else _shape(trial),
        expected_seconds=float(spec.get("expectedSeconds") or 0),
        holds=holds,
        starting=holds and any(pod.scheduled_since is None for pod in pods),
        unschedulable=any(pod.is_unschedulable for pod in pods),
        not_before=parse_time(status.get("notBefore")) or 0.0,
    )


def _shape(trial: TrialObject) -> str:
    """Pairs with equal kind, requests and placement have equal shapes; specs do not change."""
    templates = json.dumps(trial.spec.get("podTemplates") or {}, sort_keys=True)
    return f"{trial.namespace}/{trial.kind.value}/{templates}"


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
