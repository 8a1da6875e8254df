"""`stayer run apply` against the real API server: created, unchanged, and deleted again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from makers_cluster import ClusterLock, Installed, Run, run_manifest
from makers_taskset import TASKSET
from stayer_operator.cli.main import app

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_a_run_is_created_and_then_unchanged(installed: Installed, tmp_path: Path) -> None:
    nop = {"name": "nop", "harness": "nop"}
    manifest = run_manifest([nop], taskset=TASKSET, suspend=True)
    name, path = manifest["metadata"]["name"], tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(manifest))
    command = ["run", "apply", "-f", str(path), "-n", installed.namespace]

    with ClusterLock().held(alone=False):
        first = CliRunner().invoke(app, command)
        found = installed.api.find(installed.path("benchmarkruns", name))
        assert found is not None, first.output
        second = CliRunner().invoke(app, command)  # the operator has written a status, or not yet
        run = Run(installed, name, found["metadata"]["uid"])
        run.delete()
        run.wait_for_nothing()

    assert (first.exit_code, first.stdout) == (0, f"benchmarkrun.stayer.dev/{name} created\n")
    assert (second.exit_code, second.stdout) == (0, f"benchmarkrun.stayer.dev/{name} unchanged\n")
