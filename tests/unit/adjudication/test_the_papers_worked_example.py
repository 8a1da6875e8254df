"""evaluation.md §10.13: the paper's worked example.

Published are only its counts: 12 units, 18 edges, depth 6, maximal out-degree 4, an independent
branch of 3 units, 31 checkpoints, 2 regressions of which 1 recovers, and a visitation order that
differs from the human one on 3 of 12 units. The edges and the matrix S below are ours, made to fit
those counts; nothing else about them is known.
"""

from __future__ import annotations

from makers_gate import Column, drive, make_gate, replay, verdict_of
from stayer_evaluator.adjudication.gate import Gate, GateState
from stayer_evaluator.records.outcomes import FailureMode, UnitState
from stayer_evaluator.records.queue import EpisodeCursor, RoundRecord, SnapshotEntry, Writer
from stayer_evaluator.records.task import Inventory, InventoryUnit, UnitRecord
from stayer_evaluator.records.verdict import Verdict
from stayer_evaluator.scoring.metrics import score

UNITS = ("a1", "a2", "a3", "b1", "a4", "b2", "a5", "b3", "a6", "a7", "a8", "a9")
"""In the human order σ*; b1-b3 are the independent branch."""
EDGES = (
    ("a1", "a2"), ("a1", "a3"), ("a1", "a4"), ("a1", "a5"),
    ("a2", "a6"), ("a3", "a6"), ("a4", "a6"), ("a3", "a7"), ("a4", "a7"), ("a6", "a7"),
    ("a6", "a8"), ("a7", "a8"), ("a5", "a8"), ("a6", "a9"), ("a7", "a9"), ("a8", "a9"),
    ("b1", "b2"), ("b2", "b3"),
)  # fmt: skip
SIGMA = ("a1", "a2", "b1", "a4", "a3", "b2", "a5", "b3", "a6", "a7", "a8", "a9")
CHECKPOINTS = 31
DONE_AT = dict(zip(SIGMA, (2, 4, 6, 8, 10, 12, 15, 17, 19, 21, 24, 28), strict=True))
BROKEN = {"a2": range(14, 18), "b2": range(26, CHECKPOINTS)}
"""a2 breaks and is mended; b2 breaks for good."""


def works(unit: str, checkpoint: int) -> bool:
    return checkpoint >= DONE_AT[unit] and checkpoint not in BROKEN.get(unit, ())


def run() -> tuple[Gate, list[Verdict]]:
    gate = make_gate(UNITS, EDGES)
    state, verdicts = GateState(), []
    for number in range(CHECKPOINTS):
        column = Column({unit: "pass" for unit in UNITS if works(unit, number)})
        checkpoint = drive(gate, state, column, last=number == CHECKPOINTS - 1)
        suite = {u: checkpoint.results[u] for u in UNITS if number == CHECKPOINTS - 1}
        verdicts.append(verdict_of(checkpoint, number, suite=suite))
        state = checkpoint.state
    return gate, verdicts


def test_the_graph_has_the_published_shape() -> None:
    graph = make_gate(UNITS, EDGES).graph
    branch = {"b1", "b2", "b3"}
    assert (len(graph.order), len(set(EDGES)), graph.depth) == (12, 18, 6)
    assert max(len(after) for after in graph.successors.values()) == 4
    assert all((source in branch) == (target in branch) for source, target in EDGES)


def test_the_gate_counts_what_the_paper_counts() -> None:
    gate, verdicts = run()
    assert len(verdicts) == 31
    assert [u for v in verdicts for u in v.regressions] == ["a2", "b2"]
    assert [u for v in verdicts for u in v.recoveries] == ["a2"]
    assert set(replay(gate, verdicts).cleared) == set(UNITS)


def test_units_clear_as_soon_as_they_work_behind_an_open_gate() -> None:
    _, verdicts = run()
    clearing = {unit: v.number for v in verdicts for unit in v.cleared}
    assert clearing == DONE_AT


def test_a_regression_keeps_later_units_released() -> None:
    _, verdicts = run()
    assert verdicts[15].results["a2"].state == UnitState.FAIL
    assert verdicts[15].cleared == ("a5",)
    assert verdicts[30].results["b3"].state == UnitState.PASS


def test_the_scores_follow() -> None:
    gate, verdicts = run()
    writer = Writer(incarnation=1, nonce="n")
    done = RoundRecord(number=1, seconds=1, failure_mode=FailureMode.NONE)
    snapshots = [
        SnapshotEntry(
            number=n, snapshot=n, writer=writer, time=n, episode=EpisodeCursor(rounds=(done,)),
            base="", tree="", files=0, bytes=0,
            implemented=tuple(sorted(u for u in UNITS if n >= DONE_AT[u])),
        )
        for n in range(CHECKPOINTS)
    ]  # fmt: skip
    graph = gate.graph
    records = tuple(
        UnitRecord(
            id=u, layer=graph.layers[u], has_tests=True, prerequisites=graph.prerequisites[u]
        )
        for u in UNITS
    )
    inventory = Inventory(
        task="t", digest="d", accepted=True, suite="pytest", base_manifest="",
        units={u: InventoryUnit(cases=(u,), selectable=True, finder="folder") for u in UNITS},
    )  # fmt: skip
    metrics = score(records, UNITS, inventory, verdicts, snapshots, 1)
    assert (metrics.reg_events, metrics.recoveries) == (2, 1)
    assert metrics.sigma == SIGMA
    assert metrics.order_diff == 3
    assert metrics.order_violations == 0
    assert metrics.completion_order == SIGMA
    assert (metrics.resolved, metrics.depth) == (False, 1.0)
    assert (metrics.reg_rate, metrics.reg_final) == (2 / 12, 1 / 12)
