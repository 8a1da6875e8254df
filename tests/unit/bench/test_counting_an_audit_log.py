"""Requests in an audit log: whose, about which Trial, in which column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.audit import (
    AuditLog,
    Request,
    TrialWrites,
    count_idle,
    count_trial_writes,
    mean_writes,
    parse_requests,
)

OPERATOR = "system:serviceaccount:stayer-system:stayer-operator"
TRIAL = "demo-0123456789"
UID = "6f0e5f2c-7c4e-4a83-9df3-0a8f0a9a1c11"


def line(
    verb: str,
    resource: str,
    name: str = "",
    *,
    code: int = 200,
    user: str = OPERATOR,
    stage: str = "ResponseComplete",
    subresource: str = "",
    uri: str = "/",
) -> bytes:
    about: dict[str, Any] = {"resource": resource, "namespace": "lab", "name": name}
    if subresource:
        about["subresource"] = subresource
    event = {
        "stage": stage,
        "verb": verb,
        "user": {"username": user},
        "objectRef": about,
        "responseStatus": {"code": code},
        "requestURI": uri,
        "requestReceivedTimestamp": "2026-11-30T01:21:11.322703Z",
    }
    return orjson.dumps(event) + b"\n"


def sweep(uid: str) -> bytes:
    uri = f"/api/v1/namespaces/lab/pods?labelSelector=stayer.dev%2Ftrial-uid%3D{uid}"
    return line("deletecollection", "pods", uri=uri)


UNDISTURBED = [
    line("create", "trials", TRIAL, code=201),
    line("create", "pods", f"{TRIAL}-a-1", code=201),
    line("create", "pods", f"{TRIAL}-b-1", code=201),
    *[line("patch", "trials", TRIAL, subresource="status")] * 3,
    line("create", "events", f"{TRIAL}.17a2b", code=201),
    sweep(UID),
]


def count(*lines: bytes) -> TrialWrites:
    requests = parse_requests(lines, OPERATOR)
    return count_trial_writes(requests, {TRIAL: UID})[TRIAL]


def test_an_undisturbed_trial_costs_seven_and_its_event() -> None:
    assert count(*UNDISTURBED) == TrialWrites(
        trial_posts=1, pod_posts=2, status=3, cleanup=1, events=1
    )
    assert count(*UNDISTURBED).total == 7


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(line("create", "pods", f"{TRIAL}-a-1", user="admin"), id="another user"),
        pytest.param(line("create", "pods", "demo-9999999999-a-1"), id="another trial's pod"),
        pytest.param(sweep("another"), id="another trial's sweep"),
        pytest.param(line("get", "pods", f"{TRIAL}-a-1"), id="a read"),
        pytest.param(line("create", "pods", "web-1"), id="no pod of a trial"),
        pytest.param(line("patch", "benchmarkruns", "demo"), id="a write about the run"),
        pytest.param(line("create", "pods", f"{TRIAL}-a-1")[:-40], id="a line that is cut off"),
    ],
)
def test_what_is_not_about_the_trial_is_not_counted(foreign: bytes) -> None:
    assert count(foreign) == TrialWrites()


@pytest.mark.parametrize(
    ("disturbance", "column"),
    [
        pytest.param(line("create", "pods", f"{TRIAL}-a-1", code=409), "refused", id="conflict"),
        pytest.param(line("create", "pods", f"{TRIAL}-a-2", code=201), "pod_posts", id="next life"),
        pytest.param(line("delete", "pods", f"{TRIAL}-a-1"), "cleanup", id="one pod deleted"),
        pytest.param(line("patch", "trials", TRIAL), "other", id="not its status"),
    ],
)
def test_each_write_has_its_column(disturbance: bytes, column: str) -> None:
    assert getattr(count(disturbance), column) == 1


def test_a_watch_counts_once_when_it_begins() -> None:
    lines = [
        line("watch", "pods", stage="ResponseStarted"),
        line("watch", "pods", stage="ResponseComplete"),
        line("list", "pods", stage="ResponseStarted"),
    ]

    assert [request.verb for request in parse_requests(lines, OPERATOR)] == ["watch"]


def test_times_are_the_servers() -> None:
    [request] = parse_requests([line("get", "pods")], OPERATOR)

    assert request.at == pytest.approx(1796001671.322703)


def test_an_idle_operator_renews_its_lease() -> None:
    lines = [
        *[line("update", "leases", "stayer-operator")] * 12,
        line("watch", "pods", stage="ResponseStarted"),
        line("get", "leases", "stayer-operator"),
        line("patch", "trials", TRIAL, subresource="status"),
    ]

    idle = count_idle(parse_requests(lines, OPERATOR))

    assert (idle.lease_writes, idle.watches) == (12, 1)
    assert (idle.other_writes, idle.other_reads) == (1, 1)
    assert idle.others == {"get leases": 1, "patch trials/status": 1}


def test_means_are_over_all_trials_and_hold_the_total() -> None:
    means = mean_writes([TrialWrites(pod_posts=2, cleanup=1), TrialWrites(pod_posts=3, events=4)])

    assert means["pod_posts"] == 2.5
    assert means["total"] == 3.0
    assert means["events"] == 2.0
    assert mean_writes([])["total"] == 0.0


def test_a_log_is_read_from_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(line("get", "pods", "before"))
    log = AuditLog(path, OPERATOR)
    with path.open("ab") as stream:
        stream.write(line("get", "pods", "after"))

    assert [request.name for request in log.requests()] == ["after"]
    log.mark()
    assert log.requests() == ()


def test_a_log_that_was_rotated_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(line("get", "pods"))
    log = AuditLog(path, OPERATOR)
    path.write_bytes(b"")

    with pytest.raises(ValueError, match="rotated"):
        log.requests()


def test_kinds_name_the_subresource() -> None:
    write = Request(at=0, verb="patch", resource="trials", subresource="status", code=200)

    assert (write.kind, write.is_write) == ("patch trials/status", True)
