"""What a Trial and its document say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from makers_run import NAMESPACE, RUN, RUN_UID, World, make_manifest, make_record, make_spec
from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.trial import TrialSpec

SCRIPT_WITH_GOLD = "steps: [{applyDiff: {unit: lexer}}]"
SCRIPT_WITHOUT = "steps: [{writeFile: {path: a.txt, content: x}}]"


def started(**spec: Any) -> World:
    world = World(manifest=make_manifest(make_spec(**spec)))
    world.start_all()
    return world


def agents(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"agents": list(entries)}


def test_every_manifest_fits_the_schema_of_trials():
    world = started(attempts=2)
    for manifest in world.documents.values():
        TrialSpec.model_validate(manifest["spec"])


def test_the_digest_is_that_of_the_stored_document():
    world = started()
    for manifest in world.documents.values():
        reference = manifest["spec"]["document"]
        assert hashlib.sha256(world.objects[reference["key"]]).hexdigest() == reference["sha256"]


def test_evidence_lies_below_run_and_trial():
    world = started()
    for name, manifest in world.documents.items():
        assert manifest["spec"]["prefix"] == f"runs/{NAMESPACE}/{RUN}-{RUN_UID[:8]}/{name}/"


def test_a_trial_belongs_to_its_run_and_never_blocks_its_deletion():
    world = started()
    owner = next(iter(world.documents.values()))["metadata"]["ownerReferences"][0]
    assert owner["uid"] == RUN_UID
    assert owner["controller"] is True
    assert owner["blockOwnerDeletion"] is False


def test_planning_again_gives_the_same_bytes():
    assert started().objects == started().objects


def test_another_run_uid_gives_other_names():
    again = World(manifest=make_manifest(uid="22222222-2222-4222-8222-222222222222"))
    again.start_all()
    assert not started().trials.keys() & again.trials.keys()


@pytest.mark.parametrize(
    ("agent", "grants"),
    [
        ({"name": "x", "harness": "oracle"}, ("gold",)),
        ({"name": "x", "harness": "nop"}, ()),
        ({"name": "x", "harness": "scripted", "script": SCRIPT_WITH_GOLD}, ("gold",)),
        ({"name": "x", "harness": "scripted", "script": SCRIPT_WITHOUT}, ()),
    ],
    ids=[
        "the oracle reads gold",
        "nop does not",
        "a script that applies a unit's patch does",
        "a script that does not, does not",
    ],
)
def test_gold_goes_only_to_harnesses_that_apply_it(agent: dict[str, Any], grants: tuple[str, ...]):
    world = started(matrix=agents(agent))
    assert {world.document(t.name).grants for t in world.attempts()} == {grants}


def test_settings_reach_the_document():
    world = started(
        matrix={
            "agents": [
                {
                    "name": "w",
                    "harness": "scripted",
                    "script": SCRIPT_WITHOUT,
                    "env": [{"name": "MODE", "value": "fast"}],
                }
            ],
            "models": [{"name": "large"}],
            "loopProfiles": [{"name": "single", "outerLoopCount": 1}],
        },
        snapshots={"everySnapshot": True, "betweenStepsOnly": True},
        testVisibility="hidden",
        network="open",
        userNamespaces="preferred",
    )
    document = world.document(world.attempts()[0].name)
    assert document.agent is not None
    assert document.agent.env == {"MODE": "fast"}
    assert document.agent.script == SCRIPT_WITHOUT
    assert (document.model, document.loop.name, document.loop.outer_loop_count) == (
        "large",
        "single",
        1,
    )
    assert document.snapshots.every_snapshot
    assert document.snapshots.between_steps_only
    assert document.test_visibility == "hidden"
    assert (document.network, document.user_namespaces) == ("open", "preferred")


def test_no_model_is_null_in_the_document_and_none_in_the_trial():
    world = started()
    trial = world.attempts()[0]
    assert trial.model == "none"
    assert world.document(trial.name).model is None


def test_an_inventory_has_no_agent():
    world = started()
    inventory = next(t for t in world.trials.values() if t.kind is TrialKind.INVENTORY)
    assert world.document(inventory.name).agent is None
    assert "agent" not in world.documents[inventory.name]["spec"]


def test_a_script_may_come_from_a_config_map():
    reference = {"name": "scripts", "key": "w.yaml"}
    world = World(
        manifest=make_manifest(
            make_spec(
                matrix=agents({"name": "w", "harness": "scripted", "scriptConfigMap": reference})
            )
        ),
        scripts={("scripts", "w.yaml"): SCRIPT_WITHOUT},
    )
    world.start_all()
    agent = world.document(world.attempts()[0].name).agent
    assert agent is not None
    assert agent.script == SCRIPT_WITHOUT


@pytest.mark.parametrize(("estimate", "expected"), [(None, 1800), (300.4, 300), (9000.0, 1800)])
def test_expected_seconds(estimate: float | None, expected: int):
    world = World(source={"parser": make_record(estimated_duration_sec=estimate).to_bytes()})
    world.start_all()
    spec = world.documents[world.attempts()[0].name]["spec"]
    assert spec["expectedSeconds"] == expected
