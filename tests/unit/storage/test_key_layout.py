"""Every key of the store, as design.md §5 writes them."""

from __future__ import annotations

from stayer_evaluator.storage.layout import (
    TaskKeys,
    TrialKeys,
    run_results,
    taskset_entry,
    trial_prefix,
)


def test_a_trials_keys() -> None:
    prefix = trial_prefix("lab", "demo", "1a2b3c4d-5e6f", "demo-0123456789")
    keys = TrialKeys(prefix)

    assert prefix == "runs/lab/demo-1a2b3c4d/demo-0123456789/"
    assert [
        key.removeprefix(prefix)
        for key in (
            keys.document,
            keys.queue(7),
            keys.verdict(7),
            keys.started(7, 2),
            keys.pack("ab"),
            keys.trace("recorder-1-x", 0),
            keys.resume(3),
            keys.transcript("1/claude.jsonl"),
            keys.log("recorder.log"),
            keys.merged_trace,
            keys.results,
        )
    ] == [
        "trial.json",
        "queue/00000007",
        "verdicts/00000007",
        "verdicts/00000007.try2",
        "packs/ab",
        "trace/recorder-1-x/00000000",
        "resume/00000003",
        "transcripts/1/claude.jsonl",
        "logs/recorder.log",
        "trace.jsonl.zst",
        "results.json",
    ]


def test_a_tasks_and_a_runs_keys() -> None:
    keys = TaskKeys("d1")

    assert [keys.record, keys.public, keys.suite, keys.gold, keys.inventory] == [
        "tasks/d1/task.json",
        "tasks/d1/public.tar.zst",
        "tasks/d1/suite.tar.zst",
        "tasks/d1/gold.tar.zst",
        "tasks/d1/inventory.json",
    ]
    assert keys.base_manifest == "tasks/d1/base/manifest"
    assert keys.base_pack("h") == "tasks/d1/base/packs/h"
    assert run_results("lab", "demo", "1a2b3c4d-5e6f") == "runs/lab/demo-1a2b3c4d/results.json"
    assert taskset_entry("tasksets/demo/", "small") == "tasksets/demo/small.json"
