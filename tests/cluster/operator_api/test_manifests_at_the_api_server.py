"""The CRDs at a real API server: established, explained, refusing what examples/invalid says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from makers_kubectl import Kubectl, find_kubectl

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "invalid"
EXPECTED = yaml.safe_load((EXAMPLES / "expected/refusals.yaml").read_text())
NAMESPACE = "stayer-manifest-tests"
CRDS = ("benchmarkruns.stayer.dev", "trials.stayer.dev")

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """With CRDs (installed here only where no chart has done it) and a namespace."""
    kubectl = find_kubectl()
    installed = kubectl("get", "crd", *CRDS)[0] == 0
    if not installed:
        kubectl.must("apply", "--server-side", "-f", str(ROOT / "crds"))
    for crd in CRDS:
        kubectl.must("wait", "--for=condition=Established", f"crd/{crd}", "--timeout=30s")
    kubectl.must("create", "namespace", NAMESPACE)
    yield kubectl
    kubectl.must("delete", "namespace", NAMESPACE, "--wait=true", "--timeout=50s")
    if not installed:
        kubectl.must("delete", "crd", *CRDS)


def runs(file: str) -> str:
    """The BenchmarkRuns of an example; their ConfigMaps are none of the schema's business."""
    documents = yaml.safe_load_all((EXAMPLES / file).read_text())
    return yaml.safe_dump_all(d for d in documents if d["kind"] == "BenchmarkRun")


def apply(kubectl: Kubectl, file: str, *options: str) -> tuple[int, str]:
    return kubectl("apply", "-n", NAMESPACE, *options, "-f", "-", stdin=runs(file))


def pin(kubectl: Kubectl, file: str) -> None:
    """As the operator does before it creates the first Trial."""
    name = next(iter(yaml.safe_load_all(runs(file))))["metadata"]["name"]
    status = json.dumps({"status": {"pinned": {"spec.network": "0123456789"}}})
    kubectl.must(
        *("patch", "brun", name, "-n", NAMESPACE, "--subresource=status", "--type=merge"),
        *("-p", status),
    )


def ids(case: dict[str, Any]) -> str:
    return case["file"]


@pytest.mark.parametrize("case", [c for c in EXPECTED if c["refusedBy"] == "schema"], ids=ids)
def test_kubectl_apply_refuses(kubectl: Kubectl, case: dict[str, Any]):
    if "after" in case:
        code, said = apply(kubectl, case["after"])
        assert code == 0, said
        pin(kubectl, case["after"])

    code, said = apply(kubectl, case["file"], "--dry-run=server")

    assert code != 0
    for words in (case["field"], *case["words"]):
        assert words in said


@pytest.mark.parametrize("case", [c for c in EXPECTED if c["refusedBy"] == "condition"], ids=ids)
def test_what_becomes_a_condition_is_stored(kubectl: Kubectl, case: dict[str, Any]):
    code, said = apply(kubectl, case["file"], "--dry-run=server")
    assert code == 0, said


def test_a_run_without_a_pin_may_still_be_mended(kubectl: Kubectl):
    base = yaml.safe_load(runs("changed-network-before.yaml"))
    base["metadata"]["name"] = "mended"
    kubectl.must("apply", "-n", NAMESPACE, "-f", "-", stdin=yaml.safe_dump(base))
    base["spec"]["network"] = "open"
    kubectl.must(
        *("apply", "-n", NAMESPACE, "--dry-run=server", "-f", "-"), stdin=yaml.safe_dump(base)
    )


def test_a_pinned_run_may_grow(kubectl: Kubectl):
    base = yaml.safe_load(runs("fewer-attempts-before.yaml"))
    base["metadata"]["name"] = "growing"
    kubectl.must("apply", "-n", NAMESPACE, "-f", "-", stdin=yaml.safe_dump(base))
    status = json.dumps({"status": {"pinned": {"spec.network": "0123456789"}}})
    kubectl.must(
        *("patch", "brun", "growing", "-n", NAMESPACE, "--subresource=status"),
        *("--type=merge", "-p", status),
    )
    base["spec"]["attempts"] = 7
    base["spec"]["matrix"]["agents"].append({"name": "nop", "harness": "nop"})
    kubectl.must(
        *("apply", "-n", NAMESPACE, "--dry-run=server", "-f", "-"), stdin=yaml.safe_dump(base)
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("brun.spec.matrix", ["A cell is one agent with one model", "agents", "-required-"]),
        ("brun.spec.snapshots.intervalSeconds", ["Default: 15."]),
        ("btrial.status.phase", ["Draining"]),
    ],
)
def test_explain_reads_like_documentation(kubectl: Kubectl, path: str, words: list[str]):
    said = " ".join(kubectl.must("explain", path).split())
    for word in words:
        assert word in said


def test_get_shows_the_columns(kubectl: Kubectl):
    base = yaml.safe_load(runs("changed-network-before.yaml"))
    base["metadata"]["name"] = "columns"
    kubectl.must("apply", "-n", NAMESPACE, "-f", "-", stdin=yaml.safe_dump(base))
    head = kubectl.must("get", "brun", "columns", "-n", NAMESPACE).splitlines()[0].split()
    assert head == [
        *("NAME", "BENCHMARK", "PHASE", "TRIALS", "RUNNING", "RESOLVED", "REGRESSIONS", "AGE")
    ]
    assert "columns" in kubectl.must("get", "stayer", "-n", NAMESPACE, "-o", "name")
