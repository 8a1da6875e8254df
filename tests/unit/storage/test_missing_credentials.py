"""Without credentials the store says so at once: waiting would change nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.storage.store import AccessDenied

NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="none at all"),
        pytest.param({"AWS_ACCESS_KEY_ID": "key"}, id="a key without its secret"),
    ],
)
def test_missing_credentials_end_the_call_with_what_is_accepted(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "absent"))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    store = connect_s3(StoreSettings(bucket="b", endpoint="http://127.0.0.1:9", deadline=60))

    with pytest.raises(AccessDenied, match="AWS_ACCESS_KEY_ID"):
        asyncio.run(asyncio.wait_for(store.get("key"), 20))
