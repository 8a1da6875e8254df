"""Pod status → finding: only what the runtime did counts, not what stood in its way."""

from __future__ import annotations

from typing import Any

import pytest

from makers_features import CREATED, STAMP, ended, make_probe_pod, ran, waits
from stayer_operator.core.features.decide import Outcome
from stayer_operator.core.features.judge import Patience, judge
from stayer_operator.core.projection import pod_view

NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available",
    "lastTransitionTime": STAMP,
}
TABLE: list[tuple[str, dict[str, Any], float, Outcome, str]] = [
    ("it ran with its own users", ran(True), 2, Outcome.RAN, "users of its own"),
    ("it ran with the node's users", ran(False), 2, Outcome.RAN, "the node's users"),
    (
        "it ended well and said nothing",
        {"phase": "Succeeded", "containerStatuses": ended(0)},
        2,
        Outcome.UNCLEAR,
        "without a finding",
    ),
    (
        "it ended well and said something else",
        {"phase": "Succeeded", "containerStatuses": ended(0, '{"userNamespace":"yes"}')},
        2,
        Outcome.UNCLEAR,
        "without a finding",
    ),
    (
        "the runtime cannot start the program",
        {"phase": "Failed", "containerStatuses": ended(128, "permission denied", "StartError")},
        2,
        Outcome.DID_NOT_RUN,
        "exit code 128: StartError permission denied",
    ),
    (
        "the kubelet ended it at its deadline",
        {"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": ended(137)},
        46,
        Outcome.DID_NOT_RUN,
        "did not start within 45 s",
    ),
    (
        "it was evicted",
        {"phase": "Failed", "reason": "Evicted", "containerStatuses": ended(137)},
        5,
        Outcome.LOST,
        "Evicted",
    ),
    ("its node is gone", {"phase": "Failed"}, 5, Outcome.LOST, "Failed"),
    (
        "it is being set up",
        {"containerStatuses": waits("ContainerCreating")},
        44,
        Outcome.WAITING,
        "",
    ),
    (
        "the kubelet should have ended it and did not",
        {"containerStatuses": waits("ContainerCreating")},
        76,
        Outcome.UNCLEAR,
        "neither starts nor ends",
    ),
    (
        "its image may come yet",
        {"containerStatuses": waits("ErrImagePull")},
        29,
        Outcome.WAITING,
        "",
    ),
    (
        "its image does not come",
        {"containerStatuses": waits("ImagePullBackOff", "no such tag")},
        31,
        Outcome.UNCLEAR,
        "cannot be pulled: ImagePullBackOff no such tag",
    ),
    (
        "a container that the runtime cannot make is no image trouble",
        {"containerStatuses": waits("CreateContainerError", "no image volumes")},
        31,
        Outcome.WAITING,
        "",
    ),
    ("no node takes it yet", {"conditions": [NO_NODE]}, 59, Outcome.WAITING, ""),
    (
        "no node takes it at all",
        {"conditions": [NO_NODE]},
        61,
        Outcome.UNCLEAR,
        "0/3 nodes are available",
    ),
    ("the scheduler is away", {"conditions": []}, 61, Outcome.UNCLEAR, "has not looked"),
    ("nothing is known yet", {"conditions": []}, 0, Outcome.WAITING, ""),
]


@pytest.mark.parametrize(
    ("status", "age", "outcome", "says"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_finding(status: dict[str, Any], age: float, outcome: Outcome, says: str) -> None:
    pod = pod_view(make_probe_pod(**status))

    finding = judge(pod, CREATED + age, Patience())

    assert finding.outcome is outcome
    assert says in finding.message
    assert finding.own_users is (outcome is Outcome.RAN and "its own" in finding.message)


def test_a_pod_that_is_being_deleted_says_nothing_more() -> None:
    raw = make_probe_pod(**ran(True))
    raw["metadata"]["deletionTimestamp"] = STAMP

    assert judge(pod_view(raw), CREATED + 1, Patience()).outcome is Outcome.WAITING
