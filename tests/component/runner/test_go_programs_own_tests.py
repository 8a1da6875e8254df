"""The runner and the local cluster's pod-targets are Go; their own tests lie beside the sources."""

import os
import subprocess
from pathlib import Path

import pytest

from local_cluster.settings import SOURCE as LOCAL_CLUSTER
from makers_runner import SOURCES as RUNNER
from makers_runner import find_go


@pytest.mark.parametrize("what", ["vet", "test"])
@pytest.mark.parametrize(
    "sources", [RUNNER, LOCAL_CLUSTER / "go/pod-targets"], ids=lambda p: p.name
)
def test_go_finds_nothing_wrong(sources: Path, what: str) -> None:
    result = subprocess.run(
        [find_go(), what, "./..."],
        cwd=sources,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
