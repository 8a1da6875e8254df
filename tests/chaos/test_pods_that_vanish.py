"""Pods of a trial deleted, evicted or outlived by their predecessors; a checkpoint that kills."""

from __future__ import annotations

import signal

import pytest

from makers_chaos import WORKER, finish_with_evidence, pod_of, scripted, wait_for_snapshots
from makers_cluster import Installed, Run, pods_path, run_manifest, until
from makers_faults import Audit, find_process, send
from makers_outcome import (
    Outcome,
    column_of,
    list_keys,
    outcome_of,
)
from makers_taskset import TASKSET

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.usefixtures("together"),
    pytest.mark.timeout(400, func_only=True),
]


@pytest.mark.parametrize("grace", [None, 0], ids=["deleted", "deleted by force"])
def test_an_agent_pod_deleted_in_its_round(
    installed: Installed, calm: Outcome, grace: int | None
) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET))
    wait_for_snapshots(run, 2)

    pod = pod_of(run, "agent")
    installed.api.delete(pods_path(installed.namespace, pod["metadata"]["name"]), grace)

    [evidence] = finish_with_evidence(run, audit)
    assert outcome_of(evidence) == calm
    assert [epoch.writer.incarnation for epoch in evidence.epochs] == [1, 2]
    assert evidence.end.episode.infra_restarts == 1
    assert [e.type for e in evidence.trace].count("infra_restart") == 1


def test_an_adjudicator_pod_deleted_in_a_test(installed: Installed, calm: Outcome) -> None:
    audit = Audit()
    run = installed.apply(run_manifest([WORKER], taskset=TASKSET))
    run.wait(lambda run: run.attempts(), "its trial", 60)
    prefix = run.only()["spec"]["prefix"]
    run.wait(lambda run: run.pods("adjudicator"), "its adjudicator pod", 60)
    pod = pod_of(run, "adjudicator")
    # A test that stands still lasts until the pod is gone.
    until(
        lambda: send(pod, "/tests/duration-text", signal.SIGSTOP),
        "a test that runs",
        120,
        pause=0.02,
    )
    interrupted = under_test(prefix)
    assert len(interrupted) == 1

    installed.api.delete(pods_path(installed.namespace, pod["metadata"]["name"]))

    [evidence] = finish_with_evidence(run, audit)
    assert outcome_of(evidence) == calm
    assert {verdict.writer.incarnation for verdict in evidence.verdicts} >= {2}
    begun_twice = {
        key.partition(".")[0] for key in list_keys(f"{prefix}verdicts/") if ".try2" in key
    }
    assert begun_twice & interrupted, "the pod was not deleted in a test"


def under_test(prefix: str) -> set[str]:
    """Numbers of checkpoints that were begun and have no verdict."""
    keys = set(list_keys(f"{prefix}verdicts/"))
    begun = {key.partition(".")[0] for key in keys if ".try" in key}
    return begun - keys


# On the third snapshot, which is queue entry 3, importing the first unit takes for ever.
LATE = "import time; time.sleep(3600)"
STUBBORN = scripted(
    "stubborn",
    f"""\
steps:
  - applyDiff: {{unit: duration-text}}
  - run: {{command: [bash, -c, "echo '{LATE}' >> durations/text.py"]}}
  - run: {{command: [bash, -c, "sed -i '$d' durations/text.py"]}}
  - applyDiff: {{unit: duration-words}}
  - applyDiff: {{unit: retry-schedule}}
""",
)
LOST = f"{3:08d}"
PEACEFUL = scripted(
    "peaceful",
    """\
steps:
  - applyDiff: {unit: duration-text}
  - applyDiff: {unit: duration-words}
  - applyDiff: {unit: retry-schedule}
""",
)


def test_a_checkpoint_that_kills_its_grader(installed: Installed) -> None:
    """Each time its tests run, the task container of the adjudicator pod dies under them."""
    audit = Audit()
    run = installed.apply(run_manifest([STUBBORN], taskset=TASKSET))
    run.wait(lambda run: run.attempts(), "its trial", 60)
    for start in (1, 2):
        kill_the_grader(run, run.only()["spec"]["prefix"], start)
    [killer] = finish_with_evidence(run, audit)
    [peaceful] = finish_with_evidence(
        installed.apply(run_manifest([PEACEFUL], taskset=TASKSET)), audit
    )

    assert [verdict.grader_lost for verdict in killer.verdicts] == [
        False, False, True, False, False, False,
    ]  # fmt: skip
    lost = column_of(killer.verdicts[2])
    assert set(lost.states.values()) == {"invalid"}
    assert not lost.cleared and not lost.regressions and not lost.recoveries
    a, b = outcome_of(killer), outcome_of(peaceful)
    assert a.metrics == b.metrics
    assert a.final_states == b.final_states
    assert [(kind, unit) for kind, _, unit in a.history] == [
        (kind, unit) for kind, _, unit in b.history
    ]
    by_tree = {column.tree: column for column in b.columns}
    for column in a.columns[3:]:
        assert column.states == by_tree[column.tree].states


def kill_the_grader(run: Run, prefix: str, start: int) -> None:
    """SIGKILL PID 1 of the task container during the `start`th test of checkpoint LOST."""
    until(
        lambda: f"{LOST}.try{start}" in list_keys(f"{prefix}verdicts/"),
        f"start {start} of the checkpoint",
        180,
    )
    pod = pod_of(run, "adjudicator")
    until(lambda: find_process(pod, "/tests/duration-text"), "its tests running", 60)
    assert send(pod, "/stayer/bin/runner", signal.SIGKILL) is not None
