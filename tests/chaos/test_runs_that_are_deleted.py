"""A run deleted in every phase of its life and applied again under the same name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from makers_chaos import WORKER, finish
from makers_cluster import Installed, Run, condition, phase, reason, run_manifest, unique_name
from makers_faults import Audit, cluster
from makers_outcome import Outcome
from makers_taskset import TASKSET, push_variant

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400, func_only=True)]


def inventory_runs(run: Run) -> bool:
    return any(trial["spec"]["kind"] == "inventory" for trial in run.trials()) and bool(run.pods())


def one_is_pending(run: Run) -> bool:
    with_pods = {pod["metadata"]["labels"]["stayer.dev/trial"] for pod in run.pods()}
    names = {trial["metadata"]["name"] for trial in run.attempts()}
    return bool(names - with_pods) and bool(with_pods)


def pods_are_starting(run: Run) -> bool:
    return bool(run.pods()) and not any(condition(t, "Running") for t in run.attempts())


def one_is(wanted: str) -> Callable[[Run], bool]:
    return lambda run: any(phase(trial) == wanted for trial in run.attempts())


def has_ended(run: Run) -> bool:
    return run.status.get("phase") == "Succeeded"


PHASES = {
    "before its inventories": lambda run: run.document() is not None,
    "inventory running": inventory_runs,
    "pending": one_is_pending,
    "pods created": pods_are_starting,
    "draining": one_is("Draining"),
    "finished": has_ended,
}


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("when", PHASES)
def test_nothing_is_left_and_its_name_is_free(
    installed: Installed, when: str, tmp_path: Path
) -> None:
    fresh = when in ("before its inventories", "inventory running")
    taskset = push_variant(tmp_path, unique_name("v")) if fresh else TASKSET
    manifest = run_manifest([WORKER], taskset=taskset, attempts=2, parallelism=1)
    first = installed.apply(manifest)
    first.wait(PHASES[when], when, 180)

    first.delete()
    second = installed.apply(manifest)

    first.wait_for_nothing(60)
    second.wait(lambda run: run.pods(), "pods of its successor", 90)
    second.delete()
    second.wait_for_nothing(60)


@pytest.mark.usefixtures("together")
def test_one_deleted_while_it_runs_is_done_again_as_ever(
    installed: Installed, calm: Outcome
) -> None:
    manifest = run_manifest([WORKER], taskset=TASKSET)
    first = installed.apply(manifest)
    first.wait(one_is("Running"), "running", 120)

    first.delete()
    audit = Audit()
    second = installed.apply(manifest)

    first.wait_for_nothing(60)
    assert finish(second, audit) == [calm]


@pytest.mark.usefixtures("alone")
def test_nothing_is_left_even_without_the_object_store(installed: Installed) -> None:
    manifest = run_manifest([WORKER], taskset=TASKSET)
    first = installed.apply(manifest)
    first.wait(one_is("Running"), "running", 120)

    cluster("stop", "s3")
    try:
        first.delete()
        second = installed.apply(manifest)
        first.wait_for_nothing(60)
        second.wait(
            lambda run: reason({"status": run.status}, "TasksReady") == "StoreUnavailable",
            "to say what it waits for",
            60,
        )
    finally:
        cluster("start", "s3")

    second.wait(lambda run: run.pods(), "pods", 90)
    second.delete()
    second.wait_for_nothing(60)
