"""`stayer run apply` over a real HTTP answer: 201 for what is new, 200 for what was there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stayer_operator.cli.cluster_access import ClusterAccess
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.main import app

MANIFEST = """\
apiVersion: stayer.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: small}
spec: {benchmark: loops, attempts: 1}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(MANIFEST)
    return path


def apply(path: Path) -> str:
    said = CliRunner().invoke(app, ["run", "apply", "-f", str(path)])
    assert (said.exit_code, said.exception) == (0, None)
    return said.stdout


def test_a_new_run_is_created_and_named(api, manifest):
    assert apply(manifest) == "benchmarkrun.stayer.dev/small created\n"

    assert api.run()["spec"] == {"benchmark": "loops", "attempts": 1}
    assert [kind for kind, _ in api.writes] == ["application/apply-patch+yaml"]


def test_the_second_time_nothing_changes_and_a_change_is_told(api, manifest):
    apply(manifest)

    assert apply(manifest) == "benchmarkrun.stayer.dev/small unchanged\n"
    manifest.write_text(MANIFEST.replace("attempts: 1", "attempts: 2"))
    assert apply(manifest) == "benchmarkrun.stayer.dev/small configured\n"


def test_a_status_that_the_operator_wrote_meanwhile_is_no_change(api, manifest, monkeypatch):
    apply(manifest)
    patch = api.patch

    def patch_after_the_operator(*arguments):
        api.run()["metadata"]["resourceVersion"] += "0"
        return patch(*arguments)

    monkeypatch.setattr(api, "patch", patch_after_the_operator)

    assert apply(manifest) == "benchmarkrun.stayer.dev/small unchanged\n"


@pytest.mark.parametrize("content", [None, "", "a: [", "clusters: []\n"])
def test_a_kubeconfig_that_leads_nowhere_is_named(tmp_path, monkeypatch, content):
    path = tmp_path / "nowhere"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))

    with pytest.raises(CliError, match=rf"no cluster: {path}: .+ Set KUBECONFIG"):
        ClusterAccess(None)
