"""examples/invalid: no manifest there leads to a Trial, and the words are as promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from makers_run import NAMESPACE, RUN_UID, World
from stayer_operator.api.crds import run_crd
from stayer_operator.core.run.settings import harness_traits
from stayer_operator.core.run.spec import name_problems, parse_spec
from stayer_operator.core.run.validate import spec_problems

EXAMPLES = Path(__file__).parents[3] / "examples" / "invalid"
EXPECTED = yaml.safe_load((EXAMPLES / "expected/refusals.yaml").read_text())
CONDITIONS = [case for case in EXPECTED if case["refusedBy"] == "condition"]
# The rules that compare with the object before have no second home in the operator's own checks.
SCHEMA = [case for case in EXPECTED if case["refusedBy"] == "schema" and "after" not in case]


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / file).read_text()))


def apply(world: World, file: str) -> None:
    """As kubectl apply and gather would: ConfigMaps become scripts, the run is replaced."""
    for document in documents(file):
        if document["kind"] == "ConfigMap":
            for key, text in document["data"].items():
                world.scripts[document["metadata"]["name"], key] = text
            continue
        old = world.manifest["metadata"]
        metadata = {**old, **document["metadata"], "namespace": NAMESPACE, "uid": RUN_UID}
        metadata["generation"] = old["generation"] + 1
        world.manifest = {**document, "metadata": metadata, "status": world.status}


def make_world() -> World:
    tasks = documents("task-set.yaml")[0]["data"]
    return World(source={k.removesuffix(".json"): text.encode() for k, text in tasks.items()})


def ids(case: dict[str, Any]) -> str:
    return case["file"]


def test_every_example_is_expected_somewhere():
    files = {path.name for path in EXAMPLES.glob("*.yaml")} - {"task-set.yaml"}
    assert files == {c["file"] for c in EXPECTED} | {c["after"] for c in EXPECTED if "after" in c}


@pytest.mark.parametrize("case", CONDITIONS, ids=ids)
def test_becomes_a_condition_and_an_event_and_creates_nothing(case: dict[str, Any]):
    world = make_world()
    if "after" in case:
        apply(world, case["after"])
        world.settle()
        assert world.condition("Accepted")["status"] == "True"
    apply(world, case["file"])

    world.settle()

    accepted = world.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", case["reason"])
    assert accepted["observedGeneration"] == world.manifest["metadata"]["generation"]
    for words in (case["field"], *case["words"]):
        assert words in accepted["message"]
    warnings = [event for event in world.events if event.type == "Warning"]
    assert [event.reason for event in warnings] == [case["reason"]]
    assert case["field"] in warnings[0].message
    assert (world.trials, world.policies) == ({}, {})


@pytest.mark.parametrize("case", SCHEMA, ids=ids)
def test_what_the_schema_refuses_the_operator_refuses_too(case: dict[str, Any]):
    manifest = documents(case["file"])[0]
    spec = parse_spec(manifest)
    found = (
        spec
        if isinstance(spec, tuple)
        else (
            *name_problems(manifest["metadata"]["name"]),
            *spec_problems(spec, harness_traits(), {}),
        )
    )
    assert any(problem.field.startswith(case["field"].split("[")[0]) for problem in found) or any(
        case["field"].startswith(problem.field) for problem in found
    )


@pytest.mark.parametrize(
    "case", [c for c in EXPECTED if "after" in c and c["refusedBy"] == "schema"], ids=ids
)
def test_changes_have_a_transition_rule(case: dict[str, Any]):
    root = run_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = root["properties"]["spec"]
    at_root = [r["fieldPath"] for r in root["x-kubernetes-validations"] if "fieldPath" in r]
    below = [f".spec{r['fieldPath']}" for r in spec["x-kubernetes-validations"]]
    assert f".{case['field']}" in at_root + below


@pytest.mark.parametrize(
    "case",
    [
        c
        for c in EXPECTED
        if c["file"] in ("changed-network-after.yaml", "changed-agent-after.yaml")
    ],
    ids=ids,
)
def test_an_immutable_change_that_slips_past_the_schema_is_a_condition(case: dict[str, Any]):
    world = make_world()
    apply(world, case["after"])
    world.settle()

    apply(world, case["file"])
    world.settle()

    assert world.condition("Accepted")["reason"] == "ImmutableFieldChanged"
    assert case["field"] in world.condition("Accepted")["message"]
    assert world.trials == {}
