"""The runner is a Go program; its own tests lie beside its sources."""

import os
import subprocess

import pytest

from makers_runner import SOURCES, find_go


@pytest.mark.parametrize("what", ["vet", "test"])
def test_go_finds_nothing_wrong(what: str) -> None:
    result = subprocess.run(
        [find_go(), what, "./..."],
        cwd=SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
