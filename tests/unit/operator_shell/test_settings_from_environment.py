"""Settings are read once; every problem is named at once."""

from __future__ import annotations

import pytest

from stayer_operator.core.run.settings import CLOSED_RANGES
from stayer_operator.errors import SettingsError
from stayer_operator.settings import read_settings

LEAST = {
    "STAYER_EVALUATOR_IMAGE": "r/evaluator:1",
    "STAYER_RUNNER_IMAGE": "r/runner:1",
    "STAYER_RELAY_URL": "http://relay:8088",
    "STAYER_PROGRESS_URL": "http://progress:8087",
    "STAYER_S3_BUCKET": "evidence",
}


def test_defaults_fill_what_is_not_said() -> None:
    settings = read_settings(LEAST)
    assert settings.installation.run_namespaces == ()
    assert settings.trial_pods.runner_delivery is None
    assert settings.trial_pods.user_namespaces is None
    assert settings.trial_pods.must_fail == ()
    assert settings.pace.api_rate == 100
    assert settings.serving.metrics_port == 9090


def test_lists_and_flags_are_parsed() -> None:
    settings = read_settings(
        LEAST
        | {
            "STAYER_RUN_NAMESPACES": "lab-a, lab-b,",
            "STAYER_MUST_FAIL": "10.96.0.1:443,10.0.0.1:22",
            "STAYER_S3_PATH_STYLE": "true",
            "STAYER_API_RATE": "7",
            "STAYER_DNS_NAMESPACE": "dns",
            "STAYER_DNS_POD_LABELS": "a=b,dns.example/of=",
            "STAYER_DNS_PORT": "5353",
            "STAYER_CLOSED_RANGES": "203.0.113.0/24",
        }
    )
    assert settings.open_network.dns_namespace == "dns"
    assert settings.open_network.dns_pod_labels == {"a": "b", "dns.example/of": ""}
    assert settings.open_network.dns_port == 5353
    assert settings.open_network.closed_ranges == (*CLOSED_RANGES, "203.0.113.0/24")
    assert settings.installation.run_namespaces == ("lab-a", "lab-b")
    assert settings.trial_pods.must_fail == ("10.96.0.1:443", "10.0.0.1:22")
    assert settings.store.path_style is True
    assert settings.pace.api_rate == 7


@pytest.mark.parametrize(
    ("delivery", "users", "found"),
    [
        ("auto", "auto", (None, None)),
        ("image-volume", "true", ("image-volume", True)),
        ("init-copy", "false", ("init-copy", False)),
    ],
)
def test_features_are_set_or_found_out(delivery: str, users: str, found: object) -> None:
    env = LEAST | {"STAYER_RUNNER_DELIVERY": delivery, "STAYER_USER_NAMESPACES": users}
    pods = read_settings(env).trial_pods
    assert (pods.runner_delivery, pods.user_namespaces) == found


def test_the_api_server_must_fail_unless_told_otherwise() -> None:
    env = LEAST | {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert read_settings(env).trial_pods.must_fail == ("[fd00::1]:6443",)


def test_the_lease_is_held_by_the_pod_not_by_its_name() -> None:
    settings = read_settings(LEAST | {"POD_NAME": "operator-x", "POD_UID": "1234"})
    assert settings.installation.identity == "1234"
    assert settings.installation.pod_name == "operator-x"


def test_all_problems_are_named_at_once_with_what_is_accepted() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(
            {
                "STAYER_RUNNER_DELIVERY": "carrier-pigeon",
                "STAYER_USER_NAMESPACES": "perhaps",
                "STAYER_METRICS_PORT": "70000",
                "STAYER_S3_PATH_STYLE": "yes",
                "STAYER_RELAY_URL": "relay:8088",
                "STAYER_RUN_NAMESPACES": "ok,Not_ok",
            }
        )
    text = str(caught.value)
    for variable in (
        "STAYER_RUNNER_DELIVERY",
        "STAYER_USER_NAMESPACES",
        "STAYER_METRICS_PORT",
        "STAYER_S3_PATH_STYLE",
        "STAYER_RELAY_URL",
        "STAYER_RUN_NAMESPACES",
        "STAYER_EVALUATOR_IMAGE",
        "STAYER_S3_BUCKET",
    ):
        assert variable in text
    assert "'carrier-pigeon'" in text
    assert "image-volume, init-copy" in text
    assert "'Not_ok'" in text
