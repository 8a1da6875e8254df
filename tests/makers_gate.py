"""Driving the gate without a container: outcomes come from a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stayer_evaluator.adjudication.gate import Ask, Checkpoint, Gate, GateState, adjudicate, advance
from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.queue import Writer
from stayer_evaluator.records.verdict import UnitResult, Verdict
from stayer_evaluator.tasks.graph import build_graph

Answer = Callable[[Ask], UnitResult]


def make_gate(
    units: Sequence[str], edges: Sequence[tuple[str, str]], untested: Sequence[str] = ()
) -> Gate:
    return Gate(graph=build_graph(units, edges), tested=frozenset(units) - set(untested))


def result(state: UnitState | str, evidence: str = "") -> UnitResult:
    return UnitResult(state=UnitState(state), evidence=evidence)


@dataclass
class Column:
    """Answers of one snapshot: a state per unit, or a list for its runs one after the other."""

    states: Mapping[str, str | list[str]]
    default: str = "fail"
    evidence: str = ""
    asked: list[Ask] = field(default_factory=list)

    def __call__(self, ask: Ask) -> UnitResult:
        self.asked.append(ask)
        said = self.states.get(ask.unit, self.default)
        runs = sum(earlier.unit == ask.unit for earlier in self.asked)
        return result(said if isinstance(said, str) else said[runs - 1], self.evidence)

    @property
    def order(self) -> list[str]:
        return [ask.unit for ask in self.asked]


def drive(gate: Gate, state: GateState, answer: Answer, *, last: bool = False) -> Checkpoint:
    """Run one checkpoint to its end."""
    steps = adjudicate(gate, state, last=last)
    try:
        ask = next(steps)
        while True:
            ask = steps.send(answer(ask))
    except StopIteration as done:
        checkpoint: Checkpoint = done.value
        return checkpoint


def replay(gate: Gate, verdicts: Iterable[Verdict]) -> GateState:
    """The state that the verdicts, in queue order, lead to."""
    state = GateState()
    for verdict in verdicts:
        state = advance(state, verdict.results, verdict.cleared, gate.tested)
    return state


def verdict_of(checkpoint: Checkpoint, number: int, **other: object) -> Verdict:
    """The verdict that an adjudicator would write of the checkpoint."""
    return Verdict(
        number=number,
        snapshot=number,
        tree="",
        trigger="every",
        diff_lines=0,
        threshold=0,
        results=dict(checkpoint.results),
        cleared=checkpoint.cleared,
        regressions=checkpoint.regressions,
        recoveries=checkpoint.recoveries,
        writer=Writer(incarnation=1, nonce="n"),
        started=0,
        ended=0,
        **other,  # type: ignore[arg-type]
    )
