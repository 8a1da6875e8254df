"""The status of a Trial, read from the API's document and written whole."""

import datetime
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from stayer_evaluator.records.outcomes import Role
from stayer_operator.api.conditions import Reason, TrialCondition, TrialPhase
from stayer_operator.core.observed import Progress
from stayer_operator.core.projection import parse_time

MESSAGE_LIMIT = 1024
COUNTS = tuple(Progress.__dataclass_fields__)  # progress reports and status share these names


_ENDS: Mapping[str, TrialPhase] = {
    Reason.RESULT_RECORDED: TrialPhase.SUCCEEDED,
    Reason.CANCELLED: TrialPhase.CANCELLED,
}


class TrialConditionState(NamedTuple):
    """One condition. `since` is its lastTransitionTime."""

    type: str
    holds: bool
    reason: str
    message: str = ""
    since: float = 0.0
    observed_generation: int = 0


class TrialStatus(NamedTuple):
    """What was recorded of a trial. Times are seconds since the epoch, whole seconds."""

    observed_generation: int | None = None
    conditions: tuple[TrialConditionState, ...] = ()
    agent_incarnation: int = 1
    adjudicator_incarnation: int = 1
    infra_restarts: int = 0
    released_attempts: int = 0
    not_before: float | None = None
    round: int | None = None
    snapshots_taken: int | None = None
    snapshots_adjudicated: int | None = None
    units_cleared: int | None = None
    units_total: int | None = None
    regressions: int | None = None
    recoveries: int | None = None
    resolved: bool | None = None
    failure_mode: str | None = None
    message: str | None = None
    agent_pod: str | None = None
    adjudicator_pod: str | None = None
    results: str | None = None
    start_time: float | None = None
    completion_time: float | None = None

    def condition(self, type_: TrialCondition) -> TrialConditionState | None:
        """The condition of that type."""
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None

    def holds(self, type_: TrialCondition) -> bool:
        """The condition is there and True."""
        found = self.condition(type_)
        return found is not None and found.holds

    @property
    def held(self) -> frozenset[str]:
        """Types of the conditions that are True."""
        return frozenset([condition.type for condition in self.conditions if condition.holds])

    def reason(self, type_: TrialCondition) -> str:
        """The condition's reason, empty where it is missing."""
        found = self.condition(type_)
        return found.reason if found else ""

    @property
    def phase(self) -> TrialPhase:
        """Derived from the conditions, the last of the life's steps that holds."""
        held = self.held
        if TrialCondition.COMPLETE in held:
            return _ENDS.get(self.reason(TrialCondition.COMPLETE), TrialPhase.FAILED)
        if TrialCondition.ADMITTED not in held:
            return TrialPhase.PENDING
        if TrialCondition.AGENT_ENDED in held:
            return TrialPhase.DRAINING
        return TrialPhase.RUNNING if TrialCondition.RUNNING in held else TrialPhase.ADMITTED

    def incarnation(self, role: Role) -> int:
        """The incarnation of a role that may have a pod."""
        return self.agent_incarnation if role is Role.AGENT else self.adjudicator_incarnation

    def pod(self, role: Role) -> str | None:
        """The newest pod of the role that was seen when the status was written."""
        return self.agent_pod if role is Role.AGENT else self.adjudicator_pod

    def judged(
        self,
        type_: TrialCondition,
        holds: bool,
        reason: Reason,
        message: str,
        *,
        now: float,
        generation: int,
    ) -> "TrialStatus":
        """With that condition; its `since` moves only when it changes sides."""
        judgement = Judgement(type_, holds, reason, message)
        return self._replace(
            conditions=judge_all(self.conditions, (judgement,), now=now, generation=generation)
        )


class Judgement(NamedTuple):
    """What is found about one condition."""

    type: TrialCondition
    holds: bool
    reason: Reason
    message: str = ""


def judge_all(
    conditions: tuple[TrialConditionState, ...],
    judgements: Iterable[Judgement],
    *,
    now: float,
    generation: int,
) -> tuple[TrialConditionState, ...]:
    """The conditions with those judgements behind the others; a `since` moves only when its
    condition changes sides.
    """
    judged, moment = list(conditions), float(math.floor(now))
    for type_, holds, reason, message in judgements:
        since, others = moment, []
        for condition in judged:
            if condition.type != type_:
                others.append(condition)
            elif condition.holds == holds:
                since = condition.since
        new = TrialConditionState(
            type_.value, holds, reason.value, message[:MESSAGE_LIMIT], since, generation
        )
        judged = [*others, new]
    return tuple(judged)


def parse_trial_status(raw: Mapping[str, Any]) -> TrialStatus:
    """The status as the API holds it; a Trial that was never written to has the defaults."""
    if not raw:
        return _NEVER_WRITTEN
    fields: dict[str, Any] = dict(zip(TrialStatus._fields, map(raw.get, _SPELLINGS), strict=True))
    fields |= {
        "conditions": tuple(map(_parse_condition, raw.get("conditions") or ())),
        "agent_incarnation": raw.get("agentIncarnation") or 1,
        "adjudicator_incarnation": raw.get("adjudicatorIncarnation") or 1,
        "infra_restarts": raw.get("infraRestarts") or 0,
        "released_attempts": raw.get("releasedAttempts") or 0,
        "not_before": parse_time(raw.get("notBefore")),
        "start_time": parse_time(raw.get("startTime")),
        "completion_time": parse_time(raw.get("completionTime")),
    }
    return TrialStatus(**fields)


def render_trial_status(status: TrialStatus) -> dict[str, Any]:
    """The whole status in the API's spelling; None where a field is to be absent."""
    rendered: dict[str, Any] = dict(zip(_PLAIN_SPELLINGS, _plain_values(status), strict=True))
    summary = None
    if status.units_cleared is not None and status.units_total is not None:
        summary = f"{status.units_cleared}/{status.units_total}"
    rendered |= {
        "phase": status.phase.value,
        "conditions": [_render_condition(condition) for condition in status.conditions],
        "unitsSummary": summary,
        "notBefore": render_time(status.not_before),
        "startTime": render_time(status.start_time),
        "completionTime": render_time(status.completion_time),
    }
    return rendered


def render_time(seconds: float | None) -> str | None:
    """RFC 3339 in whole seconds, rounded up: a back-off must not end before it is over."""
    return None if seconds is None else _render_seconds(math.ceil(seconds))


@lru_cache(maxsize=256)  # trials change together, and each write tells the times before again
def _render_seconds(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _parse_condition(raw: Mapping[str, Any]) -> TrialConditionState:
    get = raw.get
    return TrialConditionState(
        get("type", ""),
        get("status") == "True",
        get("reason", ""),
        get("message") or "",
        parse_time(get("lastTransitionTime")) or 0.0,
        get("observedGeneration") or 0,
    )


def _render_condition(condition: TrialConditionState) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": "True" if condition.holds else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": render_time(condition.since),
        "observedGeneration": condition.observed_generation,
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_NEVER_WRITTEN = TrialStatus()
# The API's spelling of each field, and of those that are the same there.
_SPELLINGS = tuple(map(_camel, TrialStatus._fields))
_PLAIN = tuple(
    number
    for number, name in enumerate(TrialStatus._fields)
    if name not in ("conditions", "not_before", "start_time", "completion_time")
)
_PLAIN_SPELLINGS = tuple(_SPELLINGS[number] for number in _PLAIN)
_plain_values = itemgetter(*_PLAIN)
