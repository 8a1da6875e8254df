"""`python3 -m stayer_evaluator.relay` as a process: settings, probes, end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from makers_store import free_port, make_bucket, moto_endpoint, wait_for_http

COMMAND = [sys.executable, "-m", "stayer_evaluator.relay"]


def test_settings_that_cannot_be_used_end_it_with_every_problem_named() -> None:
    answer = subprocess.run(
        COMMAND,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "STAYER_S3_SSE": "rot13"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 2
    assert answer.stderr.splitlines()[1:] == [
        "STAYER_S3_SSE: found 'rot13'; accepted: none, AES256, aws:kms",
        "STAYER_S3_BUCKET: not set; accepted: the name of a bucket",
    ]


def test_it_is_alive_before_it_is_ready_and_ends_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    port = free_port()
    with moto_endpoint() as endpoint:
        settings = make_bucket(endpoint)
        process = subprocess.Popen(
            COMMAND,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "STAYER_S3_BUCKET": settings.bucket,
                "STAYER_S3_ENDPOINT": endpoint,
                "STAYER_RELAY_PORT": str(port),
            },
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for_http(f"http://127.0.0.1:{port}/healthz", 60)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=20)
            answer = caught.value.read().decode()
            caught.value.close()
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)

    assert answer.startswith("the cluster's token keys cannot be read")
    assert process.returncode == 0, errors
    assert b"Traceback" not in errors
