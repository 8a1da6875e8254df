"""Verdict → trace events (evaluation.md §8). Pure; used live and when a trace is completed."""

from collections.abc import Collection
from typing import Any

from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.trace import EventType
from stayer_evaluator.records.verdict import Verdict

Event = tuple[EventType, dict[str, Any]]


def newly_released(verdict: Verdict, released: Collection[str]) -> tuple[str, ...]:
    """Units whose tests scored for the first time; transparent units have none to release."""
    return tuple(
        unit
        for unit, result in verdict.results.items()
        if unit not in released
        and result.state != UnitState.SEALED
        and (result.cases or result.state != UnitState.PASS)
    )


def verdict_events(verdict: Verdict, released: Collection[str]) -> list[Event]:
    """Everything that a verdict says, in a fixed order; `number` ties the events to it."""
    number = verdict.number
    events: list[Event] = [
        ("snapshot_coalesced", {"number": skipped, "by": number}) for skipped in verdict.coalesced
    ]
    events.append(("checkpoint", _checkpoint(verdict)))
    events += [("unit_released", {"number": number, "unit": unit}) for unit in released]
    events += [("unit_cleared", {"number": number, "unit": unit}) for unit in verdict.cleared]
    events += [
        ("regression", {"number": number, "unit": unit, "state": verdict.results[unit].state})
        for unit in verdict.regressions
    ]
    events += [("recovery", {"number": number, "unit": unit}) for unit in verdict.recoveries]
    events += [
        ("tamper_suspected", {"number": number, "reason": reason}) for reason in verdict.tamper
    ]
    return events


def _checkpoint(verdict: Verdict) -> dict[str, Any]:
    """The verdict itself, without what the event carries anyway."""
    return verdict.model_dump(mode="json", exclude={"schema_version", "snapshot"})
