"""One sitting: a snapshot on the bench, between its canaries, through the gate.

Canaries that do not hold spoil everything between them; the sitting is then repeated once from a
freshly restored tree, and if they break again its results are invalid (evaluation.md §10.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stayer_evaluator.adjudication.bench import Bench, BenchFault
from stayer_evaluator.adjudication.gate import (
    OWN_LIMITS,
    Checkpoint,
    Gate,
    GateState,
    Steps,
    adjudicate,
    invalidated,
)
from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.verdict import CanaryResult, UnitResult

TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """What a sitting found."""

    checkpoint: Checkpoint
    suite: Mapping[str, UnitResult]
    canaries: tuple[CanaryResult, ...]
    tamper: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


async def sit(bench: Bench, gate: Gate, state: GateState, *, last: bool) -> Sitting:
    """Adjudicate the tree that the bench restores.

    `last` also runs the units that the gate keeps sealed (for `tpr_ungated`). Raises BenchStopped,
    RunnerLost; StoreError and CorruptObject from restoring.
    """
    canaries: list[CanaryResult] = []
    evidence: dict[str, str] = {}
    fault = ""
    for _ in range(TRIES):
        try:
            found = await _between_canaries(bench, gate, state, last, canaries)
        except BenchFault:
            fault = "environment"
            continue
        if found is None:
            fault = "canary"
        elif found.spoilt:
            fault = "canary"
            evidence |= _limits(found.checkpoint.results)
        else:
            tamper = _tamper({**found.checkpoint.results, **found.suite})
            return Sitting(
                checkpoint=found.checkpoint,
                suite=found.suite,
                canaries=tuple(canaries),
                tamper=tamper,
                environment={"runner": bench.runner},
            )
    checkpoint = invalidated(gate, state, evidence, fault, last=last)
    suite = {u: checkpoint.results[u] for u in gate.graph.order if last and u in gate.tested}
    return Sitting(checkpoint=checkpoint, suite=suite, canaries=tuple(canaries))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    checkpoint: Checkpoint
    suite: Mapping[str, UnitResult]
    spoilt: bool


async def _between_canaries(
    bench: Bench, gate: Gate, state: GateState, last: bool, canaries: list[CanaryResult]
) -> _Found | None:
    """One try; null when the canaries before it did not hold. Appends to `canaries`."""
    await bench.prepare()
    before = await bench.canaries("before")
    canaries += before
    if not all(canary.held for canary in before):
        return None
    checkpoint = await _drive(bench, adjudicate(gate, state, last=last))
    suite = await _whole_suite(bench, gate, checkpoint) if last else {}
    after = await bench.canaries("after")
    canaries += after
    spoilt = not all(canary.held for canary in after)
    return _Found(checkpoint=checkpoint, suite=suite, spoilt=spoilt)


async def _drive(bench: Bench, steps: Steps) -> Checkpoint:
    """Answer the gate's questions until it has its checkpoint."""
    try:
        ask = next(steps)
        while True:
            if ask.fresh:
                await bench.prepare()
            ask = steps.send(await bench.run_unit(ask.unit))
    except StopIteration as done:
        checkpoint: Checkpoint = done.value
        return checkpoint


async def _whole_suite(bench: Bench, gate: Gate, checkpoint: Checkpoint) -> dict[str, UnitResult]:
    """Every tested unit on this snapshot: the gate's own results, and runs of what it sealed."""
    suite = {}
    for unit in gate.graph.order:
        if unit in gate.tested:
            result = checkpoint.results[unit]
            sealed = result.state == UnitState.SEALED
            suite[unit] = await bench.run_unit(unit) if sealed else result
    return suite


def _limits(results: Mapping[str, UnitResult]) -> dict[str, str]:
    return {unit: r.evidence for unit, r in results.items() if r.evidence in OWN_LIMITS}


def _tamper(results: Mapping[str, UnitResult]) -> tuple[str, ...]:
    """Cases that the inventory does not know: nobody but the candidate can have added them."""
    return tuple(
        f"{unit}: {len(result.extra_cases)} cases outside the inventory, "
        f"first {result.extra_cases[0]}"
        for unit, result in results.items()
        if result.extra_cases
    )
