"""Gated release (evaluation.md §2 and §10.4) as a pure step protocol.

`adjudicate` is a generator: it asks for runs of single units (`Ask`) and is sent their results, so
the whole contract can be exercised without a container:

    obligations, in topological order ──▶ ready frontier, to a fixed point ──▶ the rest is sealed
            │ not pass, was pass                 │ pass: enters C, its successors may become ready
            ▼                                    ▼
      run once more (confirm)              newly ready units are run on the same snapshot

A transparent unit (no tests) enters C as soon as its prerequisites are there and is never run.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.verdict import UnitResult
from stayer_evaluator.tasks.graph import UnitGraph

#: Evidence of the candidate's own limit: decides an invalid result at the last snapshot (§10.4).
OWN_LIMITS = frozenset({"oom", "timeout", "disk", "pids"})
_NOT_RUN = frozenset({UnitState.SEALED, UnitState.INVALID})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What is gated: the graph and which of its units have tests."""

    graph: UnitGraph
    tested: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """C in clearing order, and which of its tested units passed at their last run."""

    cleared: tuple[str, ...] = ()
    passing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Run the tests of `unit` on the snapshot.

    `confirm` is the second run of a flip from pass, `again` the second run of an invalid one; both
    want a freshly restored workspace, as the first run may have changed it.
    """

    unit: str
    why: Literal["obligation", "frontier", "confirm", "again"]

    @property
    def fresh(self) -> bool:
        return self.why in ("confirm", "again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One column of S with its events. `results` has every unit of the graph."""

    results: Mapping[str, UnitResult]
    cleared: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    recoveries: tuple[str, ...] = ()
    state: GateState = field(default_factory=GateState)

    @property
    def valid(self) -> bool:
        """No unit is left without a believable result."""
        return all(result.state != UnitState.INVALID for result in self.results.values())


Steps = Generator[Ask, UnitResult, Checkpoint]


def adjudicate(gate: Gate, state: GateState, *, last: bool = False) -> Steps:
    """Adjudicate one snapshot from the state before it (evaluation.md §2.1–2.4).

    `last` lets evidence of the candidate's own limit decide what stayed invalid (§10.4).
    """
    results: dict[str, UnitResult] = {}
    for unit in gate.graph.order:
        if unit in state.cleared and unit in gate.tested:
            results[unit] = yield from _obligation(unit, unit in state.passing, last)
    cleared = list(state.cleared)
    while ready := [u for u in gate.graph.ready(cleared) if u not in results]:
        for unit in ready:
            if unit in gate.tested:
                results[unit] = yield from _run(unit, "frontier", last)
                if results[unit].state != UnitState.PASS:
                    continue
            else:
                results[unit] = UnitResult(state=UnitState.PASS)
            cleared.append(unit)
    return conclude(gate, state, results, tuple(cleared[len(state.cleared) :]))


def invalidated(
    gate: Gate, state: GateState, evidence: Mapping[str, str], default: str, *, last: bool = False
) -> Checkpoint:
    """A checkpoint none of whose runs can be believed: canary failed twice or grader lost.

    Obligations and the ready frontier are invalid, each with its own `evidence` or `default`; at
    the last snapshot a unit with evidence of the candidate's own limit is an error instead.
    """
    results: dict[str, UnitResult] = {}
    transparent = _transparent_closure(gate, state.cleared)
    reached = (*state.cleared, *transparent)
    for unit in (*reached, *gate.graph.ready(reached)):
        if unit in gate.tested:
            result = UnitResult(state=UnitState.INVALID, evidence=evidence.get(unit, default))
            results[unit] = _settle(result, last)
        else:
            results[unit] = UnitResult(state=UnitState.PASS)
    return conclude(gate, state, results, transparent)


def conclude(
    gate: Gate, state: GateState, results: Mapping[str, UnitResult], cleared: tuple[str, ...]
) -> Checkpoint:
    """Events, sealed units and the next state, from the results of one snapshot."""
    ran = {unit: r.state for unit, r in results.items() if r.state not in _NOT_RUN}
    obligations = [u for u in gate.graph.order if u in state.cleared and u in gate.tested]
    transparent = {u for u in state.cleared if u not in gate.tested}
    full = {
        unit: results.get(unit)
        or UnitResult(state=UnitState.PASS if unit in transparent else UnitState.SEALED)
        for unit in gate.graph.order
    }
    return Checkpoint(
        results=full,
        cleared=cleared,
        regressions=tuple(
            u
            for u in obligations
            if u in state.passing and ran.get(u, UnitState.PASS) != UnitState.PASS
        ),
        recoveries=tuple(
            u for u in obligations if u not in state.passing and ran.get(u) == UnitState.PASS
        ),
        state=advance(state, full, cleared, gate.tested),
    )


def advance(
    state: GateState,
    results: Mapping[str, UnitResult],
    cleared: tuple[str, ...],
    tested: frozenset[str],
) -> GateState:
    """The state after a checkpoint. Invalid and sealed results leave a unit's last run alone."""
    everything = (*state.cleared, *cleared)
    passing = set(state.passing)
    for unit in tested.intersection(everything) & results.keys():
        outcome = results[unit].state
        if outcome == UnitState.PASS:
            passing.add(unit)
        elif outcome not in _NOT_RUN:
            passing.discard(unit)
    return GateState(cleared=everything, passing=frozenset(passing))


def _obligation(unit: str, was_pass: bool, last: bool) -> Generator[Ask, UnitResult, UnitResult]:
    """Run a cleared unit; a flip from pass counts only when a second run confirms it (§10.4)."""
    result = yield from _run(unit, "obligation", last)
    if not was_pass or result.state in (UnitState.PASS, UnitState.INVALID):
        return result
    second = yield from _run(unit, "confirm", last)
    if second.state == UnitState.PASS:
        return second.model_copy(update={"flaky": True})
    if second.state == UnitState.INVALID:
        return second
    return result


def _run(
    unit: str, why: Literal["obligation", "frontier", "confirm"], last: bool
) -> Generator[Ask, UnitResult, UnitResult]:
    """One run, done again once when it is invalid."""
    result = yield Ask(unit=unit, why=why)
    if result.state == UnitState.INVALID:
        result = yield Ask(unit=unit, why="again")
    return _settle(result, last)


def _settle(result: UnitResult, last: bool) -> UnitResult:
    if last and result.state == UnitState.INVALID and result.evidence in OWN_LIMITS:
        return result.model_copy(update={"state": UnitState.ERROR})
    return result


def _transparent_closure(gate: Gate, cleared: tuple[str, ...]) -> tuple[str, ...]:
    """Transparent units that become ready from `cleared` without any run."""
    added: list[str] = []
    while ready := [u for u in gate.graph.ready((*cleared, *added)) if u not in gate.tested]:
        added += ready
    return tuple(added)
