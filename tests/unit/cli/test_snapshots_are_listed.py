"""`stayer trial snapshots`: lists for programs, seconds since the first for people."""

from stayer_evaluator.records.queue import EpisodeCursor, PathReport, SnapshotEntry, Writer
from stayer_evaluator.records.verdict import Verdict
from stayer_operator.cli.documents import SNAPSHOT_COLUMNS, snapshot_document, snapshot_rows

WRITER = Writer(incarnation=1, nonce="n")


def entry(snapshot: int, time: float, **more) -> SnapshotEntry:
    return SnapshotEntry(
        number=snapshot + 1, snapshot=snapshot, writer=WRITER, time=time, episode=EpisodeCursor(),
        base="", tree="t", files=3, bytes=9, implemented=("a",),
        **more,
    )  # fmt: skip


def verdict(**found) -> Verdict:
    return Verdict(
        number=1, snapshot=0, tree="t", trigger="first", diff_lines=0, threshold=0, results={},
        writer=WRITER, started=0, ended=1, **found,
    )  # fmt: skip


def test_programs_get_lists_and_the_clock():
    found = snapshot_document(entry(0, 1900000000.04), verdict(cleared=("a", "b")))

    assert found["time"] == 1900000000.0
    assert (found["cleared"], found["regressions"], found["recoveries"]) == (["a", "b"], [], [])
    assert tuple(name.upper() for name in found) == SNAPSHOT_COLUMNS


def test_lists_are_lists_before_anything_was_adjudicated():
    found = snapshot_document(entry(0, 0), None)

    assert (found["adjudicated"], found["cleared"], found["regressions"]) == (False, [], [])


def test_people_see_seconds_since_the_first_snapshot():
    snapshots = [
        snapshot_document(entry(0, 1900000000), None),
        snapshot_document(entry(1, 1900000012.5), verdict(cleared=("a", "b"))),
    ]

    rows = snapshot_rows(snapshots)

    assert [row[1] for row in rows] == ["0.0 s", "12.5 s"]
    assert [row[8] for row in rows] == ["", "a b"]
    assert snapshot_rows([]) == []


def test_what_is_not_stored_is_counted_for_people_and_named_for_programs():
    report = PathReport(path="giant", problem="sparse_capped", detail="1 TiB")
    found = [snapshot_document(entry(n, 0, reports=r), None) for n, r in enumerate(((), (report,)))]

    assert [row[-1] for row in snapshot_rows(found)] == ["", 1]
    assert found[1]["problems"] == [
        {"path": "giant", "problem": "sparse_capped", "detail": "1 TiB"}
    ]
