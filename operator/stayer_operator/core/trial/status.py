"""The status of a Trial, read from the API's document and written whole."""

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialConditionState:
    """One condition. `since` is its lastTransitionTime."""

    type: str
    holds: bool
    reason: str
    message: str = ""
    since: float = 0.0
    observed_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStatus:
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

    def reason(self, type_: TrialCondition) -> str:
        """The condition's reason, empty where it is missing."""
        found = self.condition(type_)
        return found.reason if found else ""

    @property
    def phase(self) -> TrialPhase:
        """Derived from the conditions, the last of the life's steps that holds."""
        if self.holds(TrialCondition.COMPLETE):
            return _ENDS.get(self.reason(TrialCondition.COMPLETE), TrialPhase.FAILED)
        if not self.holds(TrialCondition.ADMITTED):
            return TrialPhase.PENDING
        if self.holds(TrialCondition.AGENT_ENDED):
            return TrialPhase.DRAINING
        running = self.holds(TrialCondition.RUNNING)
        return TrialPhase.RUNNING if running else TrialPhase.ADMITTED

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
        old = self.condition(type_)
        since = old.since if old is not None and old.holds == holds else float(math.floor(now))
        new = TrialConditionState(
            type=type_.value,
            holds=holds,
            reason=reason.value,
            message=message[:MESSAGE_LIMIT],
            since=since,
            observed_generation=generation,
        )
        others = tuple(c for c in self.conditions if c.type != type_)
        return replace(self, conditions=(*others, new))


def parse_trial_status(raw: Mapping[str, Any]) -> TrialStatus:
    """The status as the API holds it; a Trial that was never written to has the defaults."""
    plain = {name: raw.get(spelling) for name, spelling in _PLAIN.items()}
    return TrialStatus(
        conditions=tuple(_parse_condition(condition) for condition in raw.get("conditions") or ()),
        agent_incarnation=raw.get("agentIncarnation") or 1,
        adjudicator_incarnation=raw.get("adjudicatorIncarnation") or 1,
        infra_restarts=raw.get("infraRestarts") or 0,
        released_attempts=raw.get("releasedAttempts") or 0,
        not_before=parse_time(raw.get("notBefore")),
        start_time=parse_time(raw.get("startTime")),
        completion_time=parse_time(raw.get("completionTime")),
        **plain,
    )


def render_trial_status(status: TrialStatus) -> dict[str, Any]:
    """The whole status in the API's spelling; None where a field is to be absent."""
    rendered: dict[str, Any] = {
        spelling: getattr(status, name) for name, spelling in _RENDERED.items()
    }
    summary = None
    if status.units_cleared is not None and status.units_total is not None:
        summary = f"{status.units_cleared}/{status.units_total}"
    return rendered | {
        "phase": status.phase.value,
        "conditions": [_render_condition(condition) for condition in status.conditions],
        "unitsSummary": summary,
        "notBefore": render_time(status.not_before),
        "startTime": render_time(status.start_time),
        "completionTime": render_time(status.completion_time),
    }


def render_time(seconds: float | None) -> str | None:
    """RFC 3339 in whole seconds, rounded up: a back-off must not end before it is over."""
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(math.ceil(seconds), tz=datetime.UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _parse_condition(raw: Mapping[str, Any]) -> TrialConditionState:
    return TrialConditionState(
        type=raw.get("type", ""),
        holds=raw.get("status") == "True",
        reason=raw.get("reason", ""),
        message=raw.get("message") or "",
        since=parse_time(raw.get("lastTransitionTime")) or 0.0,
        observed_generation=raw.get("observedGeneration") or 0,
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


# The API's spelling by ours.
_PLAIN = {
    name: _camel(name)
    for name in (*COUNTS, "observed_generation", "resolved", "failure_mode", "message",
                 "agent_pod", "adjudicator_pod", "results")
}  # fmt: skip
_RENDERED = {
    name: _camel(name)
    for name in TrialStatus.__dataclass_fields__
    if name not in ("conditions", "not_before", "start_time", "completion_time")
}
