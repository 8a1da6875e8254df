"""Documents are decoded as far as somebody reads them, and no view differs for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makers_trial import (
    make_raw_pod,
    make_raw_spec,
    make_raw_trial,
    running,
    said,
    terminated,
    waiting,
)
from stayer_evaluator.records.outcomes import Role
from stayer_operator.adapters import wire
from stayer_operator.adapters.informer import newest_events
from stayer_operator.core.projection import pod_view, trial_object

unread = st.dictionaries(
    st.text(min_size=1, max_size=8).map(lambda name: f"x-{name}"),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=6,
    ),
    max_size=3,
)
statuses = st.sampled_from(
    [
        waiting("task", "PodInitializing"),
        waiting("task", "ImagePullBackOff", "no such image"),
        running("task"),
        terminated("task", 0),
        terminated("recorder", 137, message="killed"),
        terminated("recorder", 0, message=said("end", failure_mode="none")),
    ]
)


@st.composite
def raw_pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods in many states, with things in them that nobody reads."""
    pod: dict[str, Any] = make_raw_pod(
        draw(st.sampled_from(Role)),
        draw(st.integers(1, 3)),
        phase=draw(st.sampled_from(["Pending", "Running", "Failed"])),
        containers=draw(st.lists(statuses, max_size=2)),
        inits=draw(st.lists(statuses, max_size=2)),
    )
    for part in (pod, pod["metadata"], pod["spec"], pod["status"]):
        part.update(draw(unread))
    for container in pod["status"].get("containerStatuses") or ():
        container.update(draw(unread))
    return pod


@given(raw_pods())
def test_a_pod_looks_as_if_all_of_it_had_been_read(raw: dict[str, Any]) -> None:
    data = msgspec.json.encode(raw)

    assert pod_view(wire.PODS.one(data)) == pod_view(raw)
    page = wire.PODS.page(b'{"metadata":{"continue":"t"},"items":[' + data + b"]}")
    assert [pod_view(item) for item in page["items"]] == [pod_view(raw)]
    assert page["metadata"] == {"continue": "t"}
    event = wire.PODS.event(b'{"type":"MODIFIED","object":' + data + b"}")
    assert (event["type"], pod_view(event["object"])) == ("MODIFIED", pod_view(raw))


def test_what_nobody_reads_of_a_pod_is_not_there() -> None:
    raw = make_raw_pod(Role.AGENT)
    raw["metadata"]["managedFields"] = [{"manager": "kubelet"}]

    read = wire.PODS.one(msgspec.json.encode(raw))

    assert "managedFields" not in read["metadata"]
    assert "containers" not in read["spec"]


@given(unread)
def test_spec_and_status_of_a_trial_are_read_whole(more: dict[str, Any]) -> None:
    raw = make_raw_trial(spec=make_raw_spec() | more, status=more)

    assert trial_object(wire.TRIALS.one(msgspec.json.encode(raw))) == trial_object(raw)


@pytest.mark.parametrize(
    "document",
    [
        {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410}},
        {"type": "MODIFIED", "object": {"metadata": {"name": "p"}, "status": {"phase": 7}}},
        {"type": "BOOKMARK", "object": {"metadata": {"creationTimestamp": None}, "status": {}}},
    ],
)
def test_what_has_another_shape_is_read_whole(document: dict[str, Any]) -> None:
    assert wire.PODS.event(msgspec.json.encode(document)) == document


def event(kind: str, uid: str, version: int) -> bytes:
    metadata = {"uid": uid, "name": uid, "resourceVersion": str(version)}
    return msgspec.json.encode({"type": kind, "object": {"metadata": metadata}})


def told(*lines: bytes) -> list[tuple[str, str]]:
    return [
        (event["type"], event["object"]["metadata"]["resourceVersion"])
        for event in newest_events(lines, wire.PODS.event)
        if event
    ]


def test_of_sights_that_come_together_the_newest_is_told() -> None:
    assert told(
        event("ADDED", "one", 1),
        event("MODIFIED", "two", 2),
        event("MODIFIED", "one", 3),
        event("MODIFIED", "one", 4),
        b"",
    ) == [("MODIFIED", "2"), ("MODIFIED", "4")]


def test_how_an_object_ended_is_told_before_its_deletion() -> None:
    lines = [event("MODIFIED", "one", 1), event("MODIFIED", "one", 2), event("DELETED", "one", 3)]

    assert told(*lines) == [("MODIFIED", "2"), ("DELETED", "3")]


def test_an_object_of_the_same_name_is_another_one() -> None:
    lines = [event("MODIFIED", "old", 1), event("DELETED", "old", 2), event("ADDED", "new", 3)]

    assert told(*lines) == [("MODIFIED", "1"), ("DELETED", "2"), ("ADDED", "3")]


def test_a_torn_line_comes_after_what_was_whole() -> None:
    heard = newest_events(
        [event("ADDED", "one", 1), b'{"type":', event("ADDED", "two", 2)], wire.PODS.event
    )

    assert next(heard)["object"]["metadata"]["uid"] == "one"
    with pytest.raises(msgspec.DecodeError):
        next(heard)
