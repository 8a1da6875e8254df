"""Settings of the store and the relay: defaults, and every mistake named at once."""

from __future__ import annotations

import pytest

from stayer_evaluator.relay.__main__ import RelaySettings
from stayer_evaluator.storage.settings import SettingsError, StoreSettings


def test_a_bucket_is_enough() -> None:
    settings = StoreSettings.from_env({"STAYER_S3_BUCKET": "evidence"})

    assert settings == StoreSettings(bucket="evidence")


def test_everything_can_be_set() -> None:
    env = {
        "STAYER_S3_BUCKET": "b",
        "STAYER_S3_ENDPOINT": "https://s3.lab",
        "STAYER_S3_REGION": "eu-1",
        "STAYER_S3_PREFIX": "stayer/",
        "STAYER_S3_PATH_STYLE": "false",
        "STAYER_S3_CA": "/etc/ca.pem",
        "STAYER_S3_SSE": "aws:kms",
        "STAYER_S3_SSE_KMS_KEY": "key",
        "STAYER_S3_CHECKSUMS": "when_supported",
        "STAYER_S3_CONNECT_TIMEOUT_SECONDS": "2",
        "STAYER_S3_READ_TIMEOUT_SECONDS": "10",
        "STAYER_S3_CONNECTIONS": "4",
        "STAYER_S3_DEADLINE_SECONDS": "60",
    }

    assert StoreSettings.from_env(env) == StoreSettings(
        bucket="b",
        endpoint="https://s3.lab",
        region="eu-1",
        prefix="stayer/",
        path_style=False,
        ca_file="/etc/ca.pem",
        encryption="aws:kms",
        kms_key="key",
        checksums="when_supported",
        connect_timeout=2.0,
        read_timeout=10.0,
        connections=4,
        deadline=60.0,
    )


def test_every_problem_is_named_with_what_was_found_and_what_is_accepted() -> None:
    env = {
        "STAYER_S3_ENDPOINT": "s3.lab",
        "STAYER_S3_PREFIX": "x",
        "STAYER_S3_PATH_STYLE": "yes",
        "STAYER_S3_SSE": "rot13",
        "STAYER_S3_SSE_KMS_KEY": "key",
        "STAYER_S3_DEADLINE_SECONDS": "soon",
        "STAYER_S3_CONNECTIONS": "-1",
        "STAYER_RELAY_PORT": "high",
    }

    with pytest.raises(SettingsError) as caught:
        RelaySettings.from_env(env)

    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "STAYER_S3_PATH_STYLE",
        "STAYER_S3_SSE",
        "STAYER_S3_CONNECTIONS",
        "STAYER_S3_DEADLINE_SECONDS",
        "STAYER_S3_BUCKET",
        "STAYER_S3_ENDPOINT",
        "STAYER_S3_PREFIX",
        "STAYER_S3_SSE_KMS_KEY",
        "STAYER_RELAY_PORT",
    ]
    assert lines[1] == "STAYER_S3_SSE: found 'rot13'; accepted: none, AES256, aws:kms"


def test_a_relay_knows_its_trials_account() -> None:
    settings = RelaySettings.from_env(
        {"STAYER_S3_BUCKET": "b", "STAYER_TRIAL_SERVICE_ACCOUNT": "lab-trial"}
    )

    assert (settings.service_account, settings.port) == ("lab-trial", 8088)
