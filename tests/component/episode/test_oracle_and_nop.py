"""Whole episodes of the two agents that need no script, with the real runner."""

import asyncio

from makers_episode import UNITS, make_document, make_pod, make_store, play, read_queue, snapshots
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EndEntry, EpochEntry


def test_oracle_implements_every_unit_in_reference_order_with_a_snapshot_each():
    document = make_document("oracle")
    store = make_store(document)

    with make_pod(document) as pod:
        code = asyncio.run(play(pod, store))
        message = pod.termination()
        runner = pod.runners[0].wait(10)
        report = (pod.workspace / "src/report.py").read_text()
        owner = (pod.workspace / "src/report.py").stat().st_uid

    entries = read_queue(store)
    assert code == 0
    assert runner == 0
    assert isinstance(entries[0], EpochEntry)
    assert [entry.implemented for entry in snapshots(store)] == [
        (),
        ("parser",),
        ("engine", "parser"),
        ("engine", "parser", "report"),
    ]
    assert [entry.episode.step for entry in snapshots(store)] == [None, 0, 1, 2]
    end = entries[-1]
    assert isinstance(end, EndEntry)
    assert end.failure_mode is FailureMode.NONE
    assert [record.number for record in end.episode.rounds] == [1]
    assert message.kind == "end"
    assert message.snapshots_taken == 4
    assert report == 'def report(value):\n    return f"= {value}"\n'
    assert owner == 10001
    assert set(entries[-2].implemented) == set(UNITS)  # type: ignore[union-attr]


def test_nop_leaves_the_seeded_workspace_as_the_only_snapshot():
    document = make_document("nop")
    store = make_store(document)

    with make_pod(document) as pod:
        code = asyncio.run(play(pod, store))

    entries = read_queue(store)
    assert code == 0
    assert [entry.kind for entry in entries] == ["epoch", "snapshot", "end"]
