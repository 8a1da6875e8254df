"""The recorder's environment."""

import pytest

from stayer_evaluator.episode.config import BadSettings, read_settings

GOOD = {
    "STAYER_TRIAL": "t",
    "STAYER_PREFIX": "runs/ns/r-1/t/",
    "STAYER_INCARNATION": "2",
    "STAYER_TRIAL_SHA256": "a" * 64,
    "STAYER_RELAY_URL": "http://relay:8088",
}


def test_what_is_given_is_taken():
    settings = read_settings(
        {**GOOD, "STAYER_MUST_FAIL": "10.0.0.1:443, [fd00::1]:6443", "STAYER_LIMITS": "{}"}
    )

    assert settings.incarnation == 2
    assert settings.must_fail == (("10.0.0.1", 443), ("fd00::1", 6443))
    assert settings.progress_url == ""
    assert settings.writer_name == f"recorder-2-{settings.nonce}"


def test_each_start_has_a_nonce_of_its_own():
    assert read_settings(GOOD).nonce != read_settings(GOOD).nonce


def test_all_problems_are_named():
    with pytest.raises(BadSettings) as caught:
        read_settings({"STAYER_INCARNATION": "0", "STAYER_MUST_FAIL": "here,10.0.0.1:99999"})

    for name in (*list(GOOD), "'here'", "'10.0.0.1:99999'"):
        assert name in str(caught.value)
