"""What the gate keeps, whatever the graph and whatever the runs say."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from makers_gate import drive, make_gate, replay, result, verdict_of
from stayer_evaluator.adjudication.gate import Ask, Checkpoint, Gate, GateState
from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.verdict import UnitResult

RUNS = ("pass", "pass", "pass", "fail", "error", "timeout", "invalid")


@dataclass
class Step:
    before: GateState
    asked: list[tuple[Ask, UnitResult]]
    after: Checkpoint


@dataclass
class Story:
    gate: Gate
    steps: list[Step]


@st.composite
def gates(draw: st.DrawFn) -> Gate:
    units = [f"u{n}" for n in range(draw(st.integers(1, 7)))]
    shuffled = draw(st.permutations(units))
    pairs = [(a, b) for i, a in enumerate(shuffled) for b in shuffled[i + 1 :]]
    edges = [pair for pair in pairs if draw(st.booleans())]
    untested = [unit for unit in units if draw(st.integers(0, 4)) == 0]
    return make_gate(units, edges, untested)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    gate = draw(gates())
    count = draw(st.integers(1, 6))
    state, steps = GateState(), []
    for number in range(count):
        asked: list[tuple[Ask, UnitResult]] = []

        def answer(ask: Ask, asked: list[tuple[Ask, UnitResult]] = asked) -> UnitResult:
            said = result(draw(st.sampled_from(RUNS)), draw(st.sampled_from(("", "oom"))))
            asked.append((ask, said))
            return said

        checkpoint = drive(gate, state, answer, last=number == count - 1)
        steps.append(Step(state, asked, checkpoint))
        state = checkpoint.state
    return Story(gate, steps)


@given(stories())
def test_c_only_grows_and_along_the_edges(story: Story) -> None:
    for step in story.steps:
        after = step.after.state.cleared
        assert after[: len(step.before.cleared)] == step.before.cleared
        assert len(set(after)) == len(after)
        for index, unit in enumerate(after):
            assert story.gate.graph.ancestors[unit] <= set(after[:index])


@given(stories())
def test_sealed_means_exactly_that_some_ancestor_is_not_cleared(story: Story) -> None:
    for step in story.steps:
        cleared = set(step.after.state.cleared)
        for unit, outcome in step.after.results.items():
            behind = not story.gate.graph.ancestors[unit] <= cleared
            assert (outcome.state == UnitState.SEALED) == behind


@given(stories())
def test_obligations_are_run_first_and_all_of_them(story: Story) -> None:
    for step in story.steps:
        obligations = set(step.before.cleared) & story.gate.tested
        units = [ask.unit for ask, _ in step.asked]
        firsts = list(dict.fromkeys(units))
        assert set(firsts[: len(obligations)]) == obligations
        assert {a.unit for a, _ in step.asked if a.why == "frontier"}.isdisjoint(obligations)
        assert set(units) <= story.gate.tested


@given(stories())
def test_nothing_is_left_that_could_clear(story: Story) -> None:
    for step in story.steps:
        for unit in story.gate.graph.ready(step.after.state.cleared):
            assert unit in story.gate.tested
            assert step.after.results[unit].state not in (UnitState.PASS, UnitState.SEALED)


@given(stories())
def test_every_event_is_a_flip_and_every_flip_an_event(story: Story) -> None:
    last: dict[str, bool] = {}
    for step in story.steps:
        results = step.after.results
        for unit in set(step.before.cleared) & story.gate.tested:
            state = results[unit].state
            now = last[unit] if state == UnitState.INVALID else state == UnitState.PASS
            assert (unit in step.after.regressions) == (last[unit] and not now)
            assert (unit in step.after.recoveries) == (not last[unit] and now)
            last[unit] = now
        last |= {unit: True for unit in step.after.cleared if unit in story.gate.tested}
        assert set(step.after.regressions + step.after.recoveries) <= set(step.before.cleared)


@given(stories())
def test_a_regression_has_two_runs_that_did_not_pass(story: Story) -> None:
    for step in story.steps:
        for unit in step.after.regressions:
            said = [s.state for ask, s in step.asked if ask.unit == unit]
            assert UnitState.PASS not in said
            assert len(said) >= 2


@given(stories())
def test_verdicts_rebuild_the_same_state_at_every_point(story: Story) -> None:
    verdicts = []
    for number, step in enumerate(story.steps):
        assert replay(story.gate, verdicts) == step.before
        verdicts.append(verdict_of(step.after, number))
        assert replay(story.gate, verdicts) == step.after.state


@given(stories())
def test_a_unit_is_run_at_most_four_times_on_a_snapshot(story: Story) -> None:
    for step in story.steps:
        units = [ask.unit for ask, _ in step.asked]
        assert all(units.count(unit) <= 4 for unit in units)


@given(stories())
def test_every_unit_has_exactly_one_result(story: Story) -> None:
    for step in story.steps:
        assert set(step.after.results) == set(story.gate.graph.order)
