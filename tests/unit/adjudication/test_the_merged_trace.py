from __future__ import annotations

import orjson
import zstandard

from stayer_evaluator.adjudication.closing import merged
from stayer_evaluator.records.trace import TraceEvent


def event(kind: str, writer: str, sequence: int, snapshot: int | None = None) -> TraceEvent:
    return TraceEvent.model_validate(
        {"type": kind, "writer": writer, "sequence": sequence, "time": 0, "snapshot": snapshot}
    )


def test_one_stream_by_snapshot_writer_and_sequence() -> None:
    events = [
        event("checkpoint", "adjudicator-1-x", 0, 0),
        event("unit_cleared", "adjudicator-1-x", 1, 1),
        event("trial_finished", "adjudicator-1-x", 2, 1),
        event("trial_started", "recorder-1-y", 0),
        event("snapshot_taken", "recorder-1-y", 1, 0),
        event("round_started", "recorder-1-y", 2),
        event("snapshot_taken", "recorder-1-y", 3, 1),
        event("round_ended", "recorder-1-y", 4),
    ]
    data = zstandard.ZstdDecompressor().decompress(merged(events))
    told = [orjson.loads(line)["type"] for line in data.splitlines()]
    assert told == [
        "trial_started", "snapshot_taken", "round_started", "checkpoint", "snapshot_taken",
        "round_ended", "unit_cleared", "trial_finished",
    ]  # fmt: skip
    assert merged(reversed(events)) == merged(events)
