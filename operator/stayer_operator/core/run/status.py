"""The status document of a run: built whole, written only when it says something new."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from stayer_operator.api.conditions import Reason, RunCondition, TrialPhase
from stayer_operator.core.plan import Event
from stayer_operator.core.run.assess import Assessment
from stayer_operator.core.run.census import Census
from stayer_operator.core.run.verdicts import Judgement, Verdict

MESSAGE_LIMIT = 1000  # of an Event; the API's bound is 1024

Status = Mapping[str, Any]


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str | None) -> float | None:
    """Back again; None for nothing and for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """What the planner adds to assessment, census and judgement."""

    started: bool
    report: str | None
    pinned: Mapping[str, str] | None
    now: float


def build_status(
    old: Status, assessment: Assessment, census: Census, judgement: Judgement, facts: StatusFacts
) -> dict[str, Any]:
    """The whole desired status but for lastUpdateTime. None = the field is removed."""
    generation = assessment.run.generation
    now = timestamp(facts.now)
    ended = old.get("completionTime") or now
    return {
        "observedGeneration": generation,
        "phase": judgement.phase.value,
        "conditions": [
            _condition(verdict, old, generation, now) for verdict in judgement.verdicts()
        ],
        **_numbers(assessment, census, judgement),
        "startTime": old.get("startTime") or (now if facts.started else None),
        "completionTime": ended if judgement.is_complete else None,
        "report": facts.report,
        "pinned": dict(facts.pinned) if facts.pinned else None,
    }


def _numbers(assessment: Assessment, census: Census, judgement: Judgement) -> dict[str, Any]:
    if not census.planned:
        return dict.fromkeys(("trials", "trialsSummary", "resolvedRate", "regressions"))
    counts = {phase.value.lower(): census.phases.get(phase, 0) for phase in TrialPhase}
    never = census.planned - len(census.current)  # attempts without a Trial
    cancelled = assessment.spec is not None and assessment.spec.cancel and judgement.is_complete
    counts["cancelled" if cancelled else "pending"] += never
    counts["active"] = counts["admitted"] + counts["running"] + counts["draining"]
    done = counts["succeeded"] + counts["failed"] + counts["cancelled"]
    finished = counts["succeeded"] + counts["failed"]
    resolved = sum(trial.resolved is True for trial in census.current)
    return {
        "trials": {"total": census.planned, **counts},
        "trialsSummary": f"{done}/{census.planned}",
        "resolvedRate": f"{resolved / finished:.2f}" if finished else None,
        "regressions": sum(trial.regressions for trial in census.current),
    }


def _condition(verdict: Verdict, old: Status, generation: int, now: str) -> dict[str, Any]:
    status = {True: "True", False: "False", None: "Unknown"}[verdict.status]
    before = old_condition(old, verdict.type)
    same = before is not None and before.get("status") == status
    return {
        "type": verdict.type.value,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same and before else now,
        "reason": verdict.reason.value,
        "message": verdict.message,
    }


def old_condition(status: Status, kind: RunCondition) -> Mapping[str, Any] | None:
    """A condition of a status as it was read."""
    conditions = status.get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind.value), None)


def says_something_new(old: Status, new: Status) -> bool:
    """Any difference but of lastUpdateTime."""
    return _compared(old) != _compared(new)


def only_counts_differ(old: Status, new: Status) -> bool:
    """The difference is in numbers and messages, which may be written a little later."""
    return _weighty(old) == _weighty(new)


def _compared(status: Status) -> dict[str, Any]:
    left_out = {"lastUpdateTime"}
    return {k: v for k, v in status.items() if v is not None and k not in left_out}


def _weighty(status: Status) -> dict[str, Any]:
    counts = {"lastUpdateTime", "trials", "trialsSummary", "resolvedRate", "regressions"}
    kept = {k: v for k, v in _compared(status).items() if k not in counts}
    total = (status.get("trials") or {}).get("total")
    kept["conditions"] = [
        {k: v for k, v in condition.items() if k != "message"}
        for condition in status.get("conditions") or ()
    ]
    return {**kept, "total": total}


def events(old: Status, judgement: Judgement) -> tuple[Event, ...]:
    """One Event for each condition that now says something else; counts are no news."""
    return tuple(
        Event(
            type="Warning" if verdict.status is False and _is_trouble(verdict) else "Normal",
            reason=verdict.reason.value,
            message=verdict.message[:MESSAGE_LIMIT],
        )
        for verdict in judgement.verdicts()
        if _is_news(old, verdict)
    )


def _is_trouble(verdict: Verdict) -> bool:
    kinds = (RunCondition.ACCEPTED, RunCondition.TASKS_READY)
    return verdict.type in kinds and verdict.reason is not Reason.INVENTORY_PENDING


def _is_news(old: Status, verdict: Verdict) -> bool:
    before = old_condition(old, verdict.type)
    if verdict.type is RunCondition.PROGRESSING and verdict.status is False:
        return False  # said by the condition that stands behind it
    if before is None:
        return verdict.status is not None
    if before.get("reason") != verdict.reason.value:
        return verdict.status is not None
    return (
        verdict.type is RunCondition.ACCEPTED
        and verdict.status is False
        and before.get("message") != verdict.message
    )
