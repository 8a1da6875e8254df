"""Manifests of probe pods: little, without rights, named by the question."""

from __future__ import annotations

from typing import Any

import pytest

from makers_features import make_question
from stayer_operator.core.features.decide import COPY, VOLUME, VOLUME_WITHOUT, Variant
from stayer_operator.core.features.pod import Owner, build_probe_pod

OWNER = Owner(name="stayer-operator", uid="u-1", pull_secrets=("registry",))
EVERY = pytest.mark.parametrize("variant", [VOLUME, COPY, VOLUME_WITHOUT], ids=str)


@EVERY
def test_it_fits_the_strictest_pod_security_and_carries_nothing(variant: Variant) -> None:
    spec = build_probe_pod(make_question(), variant, OWNER)["spec"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for container in [*spec["initContainers"], *spec["containers"]]:
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["resources"]["limits"]
        assert "env" not in container


@EVERY
def test_it_ends_by_itself_and_goes_with_the_deployment(variant: Variant) -> None:
    pod = build_probe_pod(make_question(start_seconds=45), variant, OWNER)

    assert pod["spec"]["activeDeadlineSeconds"] == 45
    assert pod["spec"]["restartPolicy"] == "Never"
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Deployment", "stayer-operator", "u-1")
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize(
    ("variant", "volume", "host_users"),
    [(VOLUME, "image", False), (COPY, "emptyDir", False), (VOLUME_WITHOUT, "image", None)],
    ids=["volume", "copy", "volume with the node's users"],
)
def test_a_variant_is_made_as_a_trial_pod_would_be(
    variant: Variant, volume: str, host_users: bool | None
) -> None:
    spec = build_probe_pod(make_question(), variant, None)["spec"]

    [found] = spec["volumes"]
    assert volume in found
    assert spec.get("hostUsers") is host_users
    assert [c["name"] for c in spec["initContainers"]] == (
        ["copy-runner"] if volume == "emptyDir" else []
    )
    [container] = spec["containers"]
    assert container["command"] == ["/stayer/bin/runner", "probe"]


@pytest.mark.parametrize(
    "change",
    [
        {"runner_image": "r/runner:2"},
        {"node_runtimes": ("containerd://2.1.0 v1.38.0 6.18 amd64",)},
        {"node_runtimes": ()},
        {"pull_policy": "Always"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_question_has_another_name(change: dict[str, Any]) -> None:
    asked, other = make_question(), make_question(**change)

    assert asked.pod_name(VOLUME) == make_question().pod_name(VOLUME)
    assert asked.pod_name(VOLUME) != other.pod_name(VOLUME)
    assert asked.selector == other.selector


@EVERY
def test_names_fit_a_host_name(variant: Variant) -> None:
    assert len(make_question(asker="a" * 60).pod_name(variant)) <= 63
