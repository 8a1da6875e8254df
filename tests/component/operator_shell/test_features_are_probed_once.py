"""Probe pods against the fake API server: one answer, asked once, whatever comes in between."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from makers_features import STAMP, Answer, ClusterWithKubelet, Kubelet, make_question, ran
from makers_operator_shell import FakeApiServer, connect, status
from stayer_operator.adapters.feature_probe import FeatureProbe
from stayer_operator.core.features.decide import COPY, VOLUME, Features, Source, Wanted
from stayer_operator.core.features.judge import Patience
from stayer_operator.core.features.pod import Question

NAMESPACE = "stayer-system"
AUTO = Wanted()
PATIENCE = Patience()


def has_image_volume(pod: dict[str, Any]) -> bool:
    return any("image" in volume for volume in pod["spec"]["volumes"])


def make_cluster(kubelet: Kubelet = lambda _pod: ran(True)) -> ClusterWithKubelet:
    server = ClusterWithKubelet(kubelet=kubelet)
    template = {"spec": {"imagePullSecrets": [{"name": "registry"}]}}
    server.put("deployments", NAMESPACE, "stayer-operator", template=template)
    return server


def find(
    server: FakeApiServer,
    wanted: Wanted = AUTO,
    question: Question | None = None,
    **options: Any,
) -> Features:
    """One start of the operator, as far as the probe goes. Its pauses take no time."""

    async def pause(_seconds: float) -> None:
        await asyncio.sleep(0)

    async def main() -> Features:
        async with connect(server) as client, asyncio.timeout(10):
            probe = FeatureProbe(
                client,
                question or make_question(),
                deployment="stayer-operator",
                sleep=pause,
                **{"now": lambda: 1_800_000_000.0, **options},
            )
            return await probe.find(wanted)

    return asyncio.run(main())


def pods(server: FakeApiServer) -> list[str]:
    return [name for plural, _, name in server.objects if plural == "pods"]


def test_the_first_start_makes_one_pod_that_belongs_to_the_deployment() -> None:
    server = make_cluster()

    features = find(server)

    assert (features.delivery, features.user_namespaces) == ("image-volume", True)
    [pod] = server.posted
    [owner] = pod["metadata"]["ownerReferences"]
    deployment = server.objects[("deployments", NAMESPACE, "stayer-operator")]
    assert owner["uid"] == deployment["metadata"]["uid"]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_later_starts_find_the_answer_with_one_list() -> None:
    server = make_cluster()
    first = find(server)
    server.requests.clear()

    assert find(server) == first
    assert [(verb, path) for verb, path, _ in server.requests] == [
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
    ]


def test_where_everything_is_set_nothing_is_asked() -> None:
    server = make_cluster()

    features = find(server, Wanted(delivery="init-copy", user_namespaces=True))

    assert features.delivery == "init-copy"
    assert server.requests == []


def test_a_volume_type_that_the_api_server_refuses_leads_to_the_copy() -> None:
    def kubelet(pod: dict[str, Any]) -> Answer:
        if has_image_volume(pod):
            return status(422, "Invalid", "spec.volumes[0]: Required value: must specify a type")
        return ran(True)

    server = make_cluster(kubelet)

    features = find(server)

    assert (features.delivery, features.user_namespaces) == ("init-copy", True)
    assert "must specify a type" in features.message
    assert len(server.posted) == 1


def test_pods_that_do_not_start_say_so_at_every_start() -> None:
    def kubelet(_pod: dict[str, Any]) -> Answer:
        return {"phase": "Failed", "reason": "DeadlineExceeded"}

    server = make_cluster(kubelet)
    features = find(server)
    made = len(server.posted)

    assert (features.delivery, features.user_namespaces) == ("init-copy", False)
    assert find(server) == features
    assert len(server.posted) == made == 3


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param((403, "Forbidden", 'User "x" cannot create resource "pods"'), id="no right"),
        pytest.param((403, "Forbidden", "exceeded quota: small"), id="no quota"),
        pytest.param((403, "Forbidden", "image registry is not on the list"), id="a policy"),
    ],
)
def test_a_refusal_that_is_not_about_the_features_leaves_them_assumed(
    refusal: tuple[int, str, str],
) -> None:
    features = find(make_cluster(lambda _pod: status(*refusal)))

    assert (features.delivery, features.user_namespaces) == ("init-copy", True)
    assert features.user_namespaces_source is Source.ASSUMED
    assert refusal[2] in features.message


def test_without_the_right_to_look_the_features_are_assumed() -> None:
    server = make_cluster()
    server.refusals = [status(403, "Forbidden", 'User "x" cannot list resource "pods"')]

    assert find(server).delivery_source is Source.ASSUMED


def test_what_told_nothing_is_deleted_so_that_the_next_start_asks_again() -> None:
    waiting = [{"name": "probe", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    scheduled = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": STAMP}]
    server = make_cluster(lambda _pod: {"containerStatuses": waiting, "conditions": scheduled})

    features = find(server, now=lambda: 1_800_000_000.0 + PATIENCE.image)

    assert features.delivery_source is Source.ASSUMED
    assert pods(server) == []
    server.kubelet = lambda _pod: ran(True)
    assert find(server).delivery_source is Source.PROBE


def test_a_pod_that_is_ended_from_outside_is_made_anew() -> None:
    fates = iter([{"phase": "Failed", "reason": "Evicted"}, ran(True)])
    server = make_cluster(lambda _pod: next(fates))

    assert find(server).user_namespaces_source is Source.PROBE
    assert len(server.posted) == 2


def test_a_pod_that_is_always_ended_from_outside_is_given_up() -> None:
    server = make_cluster(lambda _pod: {"phase": "Failed", "reason": "Evicted"})

    features = find(server)

    assert features.delivery_source is Source.ASSUMED
    assert "Evicted" in features.message
    assert pods(server) == []


def test_pods_of_earlier_questions_go() -> None:
    server = make_cluster()
    find(server)

    find(server, question=make_question(runner_image="r/runner:2"))

    assert pods(server) == [make_question(runner_image="r/runner:2").pod_name(VOLUME)]


def test_another_wish_leaves_the_answers_to_the_same_question() -> None:
    server = make_cluster()
    find(server)

    features = find(server, Wanted(delivery="init-copy"))

    assert features.user_namespaces is True
    assert sorted(pods(server)) == sorted(make_question().pod_name(v) for v in (VOLUME, COPY))


def test_an_answer_that_is_lost_makes_no_second_pod() -> None:
    server = make_cluster()
    lost = iter([True])

    def kubelet(pod: dict[str, Any]) -> Answer:
        if next(lost, False):
            server._store(("pods", NAMESPACE, pod["metadata"]["name"]), {**pod}, created=True)
            server.objects[("pods", NAMESPACE, pod["metadata"]["name"])]["status"] = ran(True)
            return status(500, "InternalError", "the answer is lost")
        return ran(True)

    server.kubelet = kubelet

    assert find(server).delivery == "image-volume"
    assert len(pods(server)) == 1
    assert server.posted == []


def test_who_does_not_lead_writes_nothing() -> None:
    server = make_cluster()
    answers = iter([False, False, True])

    find(server, may_write=lambda: next(answers, True))

    assert [verb for verb, _, _ in server.requests].count("POST") == 1
    assert json.dumps(server.posted[0])
