"""The Cluster port against the fake API server: what is sent, what is shown, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from makers_operator_shell import FakeApiServer, connect, status
from stayer_evaluator.records.outcomes import Role
from stayer_operator.adapters.cluster import KubernetesCluster
from stayer_operator.core.plan import Event, StatusWrite
from stayer_operator.errors import AlreadyExists, ClusterUnavailable, Conflict, NotFound
from stayer_operator.ports import Subject

POD = {"kind": "Pod", "metadata": {"namespace": "lab", "name": "t-a-1"}}


class Onlooker:
    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.forgotten: list[tuple[str, str, str, str]] = []

    def show(self, plural: str, raw: Any) -> None:
        self.shown.append((plural, raw["metadata"]["resourceVersion"]))

    def forget(self, plural: str, namespace: str, name: str, uid: str) -> None:
        self.forgotten.append((plural, namespace, name, uid))


def use(
    server: FakeApiServer,
    scenario: Callable[[KubernetesCluster, Onlooker], Awaitable[None]],
    *,
    may_write: bool = True,
) -> None:
    async def main() -> None:
        onlooker = Onlooker()
        async with connect(server) as client:
            cluster = KubernetesCluster(
                client, onlooker=onlooker, may_write=lambda: may_write, instance="pod"
            )
            await scenario(cluster, onlooker)

    asyncio.run(main())


def write_for(raw: dict[str, Any], **changes: str) -> StatusWrite:
    metadata = raw["metadata"]
    facts = {
        "kind": "Trial",
        "namespace": "lab",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resource_version": metadata["resourceVersion"],
    }
    return StatusWrite(**(facts | changes), status={"phase": "Running", "round": None})  # type: ignore[arg-type]


def test_what_was_created_is_shown_before_the_watch_tells_it() -> None:
    server = FakeApiServer()

    async def scenario(cluster: KubernetesCluster, onlooker: Onlooker) -> None:
        created = await cluster.create_pod(POD)
        assert onlooker.shown == [("pods", created["metadata"]["resourceVersion"])]

    use(server, scenario)
    assert server.requests[0][:2] == ("POST", "/api/v1/namespaces/lab/pods")


def test_a_taken_name_is_told_apart_from_a_changed_object() -> None:
    server = FakeApiServer()
    trial = server.put("trials", "lab", "t")

    async def scenario(cluster: KubernetesCluster, _: Onlooker) -> None:
        await cluster.create_pod(POD)
        with pytest.raises(AlreadyExists):
            await cluster.create_pod(POD)
        with pytest.raises(Conflict):
            await cluster.patch_status(write_for(trial, resource_version="1"))

    use(server, scenario)


def test_a_status_is_patched_under_the_version_that_was_judged() -> None:
    server = FakeApiServer()
    trial = server.put("trials", "lab", "t")

    async def scenario(cluster: KubernetesCluster, onlooker: Onlooker) -> None:
        answer = await cluster.patch_status(write_for(trial))
        assert onlooker.shown == [("trials", answer["metadata"]["resourceVersion"])]

    use(server, scenario)
    assert server.requests[0][1] == "/apis/stayer.dev/v1alpha1/namespaces/lab/trials/t/status"
    [body] = server.bodies
    assert body["metadata"] == {
        "uid": trial["metadata"]["uid"],
        "resourceVersion": trial["metadata"]["resourceVersion"],
    }
    assert body["status"] == {"phase": "Running", "round": None}


def test_deletes_carry_the_uid_and_the_grace() -> None:
    server = FakeApiServer()
    pod = server.put("pods", "lab", "t-a-1")
    other = server.put("pods", "lab", "t-b-1")

    async def scenario(cluster: KubernetesCluster, _: Onlooker) -> None:
        await cluster.delete_pod("lab", "t-a-1", pod["metadata"]["uid"], 10)
        with pytest.raises(Conflict):
            await cluster.delete_pod("lab", "t-b-1", "another", None)

    use(server, scenario)
    assert server.bodies[0]["gracePeriodSeconds"] == 10
    assert "gracePeriodSeconds" not in server.bodies[1]
    assert ("pods", "lab", "t-b-1") in server.objects
    assert other


def test_both_pods_of_a_trial_go_in_one_request() -> None:
    server = FakeApiServer(refusals=[status(200, "", ""), status(200, "", "")])

    async def scenario(cluster: KubernetesCluster, _: Onlooker) -> None:
        await cluster.delete_pods_of_trial("lab", "uid", None, None)
        await cluster.delete_pods_of_trial("lab", "uid", Role.AGENT, 10)

    use(server, scenario)
    selectors = [query["labelSelector"] for _, _, query in server.requests]
    assert selectors == [
        "stayer.dev/trial-uid=uid",
        "stayer.dev/trial-uid=uid,stayer.dev/role=agent",
    ]


def test_a_404_makes_the_onlooker_forget() -> None:
    async def scenario(cluster: KubernetesCluster, onlooker: Onlooker) -> None:
        with pytest.raises(NotFound):
            await cluster.delete_run("lab", "gone", "u1")
        assert onlooker.forgotten == [("benchmarkruns", "lab", "gone", "u1")]

    use(FakeApiServer(), scenario)


def test_an_event_is_cut_to_what_the_api_takes() -> None:
    server = FakeApiServer()

    async def scenario(cluster: KubernetesCluster, _: Onlooker) -> None:
        about = Subject(kind="Trial", namespace="lab", name="t", uid="u")
        await cluster.emit_event(about, Event(reason="Resumed", message="x" * 3000))

    use(server, scenario)
    [event] = server.bodies
    assert len(event["note"]) == 1024
    assert event["regarding"]["uid"] == "u"
    assert event["reportingController"] == "stayer.dev/operator"


def test_without_the_lease_nothing_is_sent() -> None:
    server = FakeApiServer()

    async def scenario(cluster: KubernetesCluster, _: Onlooker) -> None:
        with pytest.raises(ClusterUnavailable, match="another operator"):
            await cluster.create_pod(POD)

    use(server, scenario, may_write=False)
    assert server.requests == []
