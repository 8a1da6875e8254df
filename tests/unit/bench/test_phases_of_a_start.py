"""Which steps a pod object shows as passed, and how a pair's phases add up."""

from __future__ import annotations

from typing import Any

import pytest

from bench.start_phases import STEPS, Start, phase_columns, steps_passed

ENDED = {"terminated": {"exitCode": 0}}
RUNNING = {"running": {"startedAt": "2026-11-30T01:00:00Z"}}
WAITING = {"waiting": {"reason": "PodInitializing"}}
INITS = ("seed", "initial-commit", "recorder", "restore")


def pod(
    *,
    node: str = "",
    conditions: tuple[str, ...] = (),
    inits: dict[str, Any] | None = None,
    started: bool = False,
    task: dict[str, Any] | None = None,
    names: tuple[str, ...] = INITS,
) -> dict[str, Any]:
    """A pod as the API shows it; `inits`: states by name."""
    states = inits or {}
    return {
        "spec": {"nodeName": node, "initContainers": [{"name": name} for name in names]},
        "status": {
            "conditions": [{"type": type_, "status": "True"} for type_ in conditions],
            "initContainerStatuses": [
                {"name": name, "state": state, "started": started and name in ("recorder",)}
                for name, state in states.items()
            ],
            "containerStatuses": [{"name": "task", "state": task}] if task else [],
        },
    }


SEEDED = {"seed": ENDED, "initial-commit": ENDED}


@pytest.mark.parametrize(
    ("seen", "last"),
    [
        pytest.param(pod(), "posted", id="just created"),
        pytest.param(pod(node="n"), "scheduled", id="has a node"),
        pytest.param(pod(conditions=("PodScheduled",)), "scheduled", id="says so itself"),
        pytest.param(
            pod(node="n", conditions=("PodReadyToStartContainers",)), "sandbox made", id="sandbox"
        ),
        pytest.param(
            pod(node="n", inits={"seed": ENDED, "initial-commit": RUNNING}), "scheduled", id="seeds"
        ),
        pytest.param(pod(node="n", inits=SEEDED), "init done", id="seeded"),
        pytest.param(
            pod(node="n", inits={**SEEDED, "recorder": RUNNING}), "init done", id="sidecar runs"
        ),
        pytest.param(
            pod(node="n", inits={**SEEDED, "recorder": RUNNING}, started=True),
            "sidecar started",
            id="sidecar has started",
        ),
        pytest.param(pod(node="n", task=WAITING), "scheduled", id="task waits"),
        pytest.param(pod(node="n", task=RUNNING), "task running", id="task runs"),
        pytest.param(pod(node="n", task=ENDED), "task running", id="task ran"),
        pytest.param(
            pod(node="n", names=("adjudicator",), inits={"adjudicator": WAITING}),
            "scheduled",
            id="without init containers the sidecar's start ends that phase",
        ),
        pytest.param(
            pod(node="n", names=("adjudicator",), inits={"adjudicator": RUNNING}),
            "init done",
            id="a sidecar alone",
        ),
    ],
)
def test_a_pod_shows_how_far_it_has_come(seen: dict[str, Any], last: str) -> None:
    assert steps_passed(seen) == set(STEPS[: STEPS.index(last) + 1])


def test_the_pair_has_passed_a_step_when_both_pods_have() -> None:
    start = Start(trial="t", created=100.0)
    start.see("t-a-1", pod(), 100.25)
    start.see("t-b-1", pod(), 100.5)
    start.see("t-a-1", pod(node="n"), 101.0)
    start.see("t-b-1", pod(node="n"), 101.5)
    start.see("t-a-1", pod(node="n", task=RUNNING), 103.0)
    assert not start.is_complete
    start.see("t-b-1", pod(node="n", task=RUNNING), 102.5)

    assert start.is_complete
    assert start.seconds == 3.0
    phases = start.phases()
    assert phases["created → pods posted"] == 0.5
    assert phases["→ scheduled"] == 1.0
    assert sum(phases.values()) == start.seconds
    assert start.updates == 6


def test_later_sights_change_nothing() -> None:
    start = Start(trial="t", created=0.0)
    for name in ("t-a-1", "t-b-1"):
        start.see(name, pod(task=RUNNING), 4.0)
    start.see("t-a-1", pod(task=ENDED), 9.0)

    assert (start.seconds, start.updates) == (4.0, 2)


def test_columns_hold_every_start() -> None:
    starts = []
    for seconds in (3.0, 5.0):
        start = Start(trial="t", created=0.0)
        start.see("t-a-1", pod(task=RUNNING), seconds)
        start.see("t-b-1", pod(task=RUNNING), 1.0)
        starts.append(start)

    assert phase_columns(starts)["created → pods posted"] == [3.0, 5.0]
    assert phase_columns(starts)["→ task running"] == [0.0, 0.0]
