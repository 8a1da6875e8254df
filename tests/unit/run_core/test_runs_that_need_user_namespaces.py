"""Where trial pods get no user namespaces, a run that demands them is refused before any pod."""

from __future__ import annotations

import pytest

from makers_run import World, make_manifest, make_spec
from stayer_operator.core.run.settings import RunSettings

WHY = "the operator's probe pod got none: probe-volume ran with the node's users"
WITHOUT = RunSettings(no_user_namespaces=WHY)


def make_world(settings: RunSettings, **spec: object) -> World:
    world = World(manifest=make_manifest(make_spec(**spec)), settings=settings)
    world.settle()
    return world


@pytest.mark.parametrize("spec", [{}, {"userNamespaces": "required"}], ids=["default", "said"])
def test_it_is_refused_with_the_reason_the_field_and_what_would_do(spec: dict[str, str]) -> None:
    world = make_world(WITHOUT, **spec)

    accepted = world.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "UserNamespaceNotEnforced")
    assert "spec.userNamespaces" in accepted["message"]
    assert "preferred or off" in accepted["message"]
    assert WHY in accepted["message"]
    assert world.status["phase"] == "Failed"
    assert [(e.type, e.reason) for e in world.events] == [("Warning", "UserNamespaceNotEnforced")]


def test_nothing_is_created_from_it() -> None:
    world = make_world(WITHOUT)

    assert world.trials == {}
    assert world.policies == {}
    assert world.objects == {}


@pytest.mark.parametrize("setting", ["preferred", "off"])
def test_runs_that_do_not_demand_them_go_on(setting: str) -> None:
    world = make_world(WITHOUT, userNamespaces=setting)

    assert world.condition("Accepted")["status"] == "True"
    assert world.trials


def test_a_run_that_changes_its_mind_is_taken() -> None:
    world = make_world(WITHOUT)

    world.manifest["spec"]["userNamespaces"] = "preferred"
    world.settle()

    assert world.condition("Accepted")["status"] == "True"
    assert world.trials


def test_a_run_is_taken_once_the_nodes_have_them() -> None:
    world = make_world(WITHOUT)

    world.settings = RunSettings()
    world.settle()

    assert world.condition("Accepted")["status"] == "True"


def test_a_run_with_trials_is_not_taken_back() -> None:
    world = make_world(RunSettings())
    assert world.trials

    world.settings = WITHOUT
    world.settle()

    assert world.condition("Accepted")["status"] == "True"


def test_other_mistakes_are_told_first() -> None:
    world = make_world(WITHOUT, matrix={"agents": [{"name": "a", "harness": "unknown"}]})

    assert world.condition("Accepted")["reason"] == "SpecInvalid"
