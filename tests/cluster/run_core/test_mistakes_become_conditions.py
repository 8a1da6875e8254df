"""examples/invalid under the real operator: a condition, a Warning Event, and nothing created."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from makers_kubectl import Kubectl, find_kubectl

EXAMPLES = Path(__file__).parents[3] / "examples" / "invalid"
EXPECTED = yaml.safe_load((EXAMPLES / "expected/refusals.yaml").read_text())
CONDITIONS = [case for case in EXPECTED if case["refusedBy"] == "condition"]
NAMESPACE = os.environ.get("STAYER_RUN_NAMESPACE", "stayer-runs")
# ConfigMaps are not watched: other content is seen when the run is looked at again.
DEADLINE = 90.0

pytestmark = pytest.mark.cluster


def file_of(name: str) -> str:
    return str(EXAMPLES / name)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    kubectl = find_kubectl()
    kubectl.must("apply", "-n", NAMESPACE, "-f", file_of("task-set.yaml"))
    yield kubectl
    names = {file for case in CONDITIONS for file in (case["file"], case.get("after")) if file}
    for file in sorted({*names, "task-set.yaml"}):
        kubectl.must("delete", "-n", NAMESPACE, "--ignore-not-found", "-f", file_of(file))


def get(kubectl: Kubectl, kind: str, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        kubectl.must("get", kind, "-n", NAMESPACE, "-o", "json", *options)
    )
    return found


def accepted(kubectl: Kubectl, run: str) -> dict[str, Any]:
    conditions = get(kubectl, f"brun/{run}").get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "Accepted"), {})


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"after {DEADLINE:.0f} s still not: {what}"
        time.sleep(0.5)


def run_name(file: str) -> str:
    documents = yaml.safe_load_all((EXAMPLES / file).read_text())
    return next(d["metadata"]["name"] for d in documents if d["kind"] == "BenchmarkRun")


def ids(case: dict[str, Any]) -> str:
    return case["file"]


@pytest.mark.parametrize("case", CONDITIONS, ids=ids)
def test_says_what_is_wrong_and_creates_nothing(kubectl: Kubectl, case: dict[str, Any]):
    run = run_name(case["file"])
    if "after" in case:
        kubectl.must("apply", "-n", NAMESPACE, "-f", file_of(case["after"]))
        until(lambda: "pinned" in get(kubectl, f"brun/{run}").get("status", {}), "pinned")

    kubectl.must("apply", "-n", NAMESPACE, "-f", file_of(case["file"]))

    until(lambda: accepted(kubectl, run).get("status") == "False", "Accepted=False")
    found = accepted(kubectl, run)
    assert found["reason"] == case["reason"]
    for words in (case["field"], *case["words"]):
        assert words in found["message"]
    about = f"involvedObject.name={run},type=Warning"
    until(lambda: get(kubectl, "events", "--field-selector", about)["items"] != [], "a Warning")
    event = get(kubectl, "events", "--field-selector", about)["items"][-1]
    assert event["reason"] == case["reason"]
    assert case["field"] in event["message"]
    for kind in ("btrial", "networkpolicy", "pod"):
        assert get(kubectl, kind, "-l", f"stayer.dev/run={run}")["items"] == []
