"""What `stayer storage report` says of the keys in a store."""

from stayer_evaluator.snapshots.prune import plan_prune
from stayer_evaluator.snapshots.usage import Usage, usage_by_prefix

RUN = "runs/lab/demo-1a2b3c4d/"
SIZES = {
    f"{RUN}demo-0123456789/trial.json": 10,
    f"{RUN}demo-0123456789/queue/00000000": 200,
    f"{RUN}demo-0123456789/packs/ab": 3000,
    f"{RUN}demo-9876543210/results.json": 40,
    f"{RUN}results.json": 5,
    "runs/lab/other-00000000/results.json": 7,
    "tasks/d1/task.json": 1,
    "tasks/d1/base/packs/cd": 60,
    "tasksets/examples/task_one.json": 2,
    "loose": 1,
}


def test_each_run_and_each_task_has_a_line_largest_first() -> None:
    assert usage_by_prefix(SIZES) == [
        Usage(RUN, trials=2, objects=5, bytes=3255, states=3200),
        Usage("tasks/d1/", trials=None, objects=2, bytes=61, states=0),
        Usage("runs/lab/other-00000000/", trials=0, objects=1, bytes=7, states=0),
        Usage("tasksets/", trials=None, objects=1, bytes=2, states=0),
        Usage("loose", trials=None, objects=1, bytes=1, states=0),
    ]


def test_states_are_what_prune_deletes_when_results_stay() -> None:
    plan = plan_prune(SIZES, runs=(RUN,), keep_results=True)

    [usage] = [usage for usage in usage_by_prefix(SIZES) if usage.prefix == RUN]
    assert sum(SIZES[key] for key in plan.delete) == usage.states


def test_an_empty_store_has_no_line() -> None:
    assert usage_by_prefix({}) == []
