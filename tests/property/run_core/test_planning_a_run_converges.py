"""plan_run in a random world: fixed points, crashes, nothing from a bad run, nothing twice."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from makers_run import KilledError, World, make_manifest, make_spec
from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import (
    TERMINAL_TRIAL_PHASES,
    Reason,
    RunCondition,
    RunPhase,
    TrialPhase,
)
from stayer_operator.core.plan import CreateTrial
from stayer_operator.core.run.settings import RunSettings

PHASES = tuple(TrialPhase)

agents = st.lists(
    st.sampled_from(
        (
            {"name": "oracle", "harness": "oracle"},
            {"name": "nop", "harness": "nop"},
            {"name": "w", "harness": "scripted", "script": "steps: [{wait: {seconds: 1}}]"},
            {"name": "bad", "harness": "nobody"},
        )
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda agent: agent["name"],
)
specs = st.builds(
    lambda listed, attempts, suspend, cancel: make_spec(
        matrix={"agents": listed}, attempts=attempts, suspend=suspend, cancel=cancel
    ),
    agents,
    st.integers(1, 3),
    st.sampled_from((False, False, False, True)),
    st.sampled_from((False, False, False, True)),
)
batches = st.integers(1, 4)


def make_world(spec: dict[str, Any], batch: int) -> World:
    return World(manifest=make_manifest(spec), settings=RunSettings(trials_per_plan=batch))


def change(data: st.DataObject, world: World) -> None:
    """Something happens: trials move on, inventories come, a person edits."""
    for name in list(world.trials):
        trial = world.trials[name]
        if trial.phase not in TERMINAL_TRIAL_PHASES and data.draw(st.booleans()):
            if trial.kind is TrialKind.INVENTORY:
                world.take_inventories(accepted=data.draw(st.integers(0, 4)) > 0)
            else:
                world.end(
                    name, data.draw(st.sampled_from(PHASES)), resolved=data.draw(st.booleans())
                )
    edit = data.draw(st.sampled_from(("none", "none", "attempts", "rerun", "suspend", "cancel")))
    spec = world.manifest["spec"]
    if edit == "attempts":
        world.edit(attempts=spec["attempts"] + 1)
    elif edit == "rerun":
        generation = spec.get("rerun", {}).get("generation", 0) + 1
        world.edit(rerun={"generation": generation, "which": ["infra_error", "unresolved"]})
    elif edit == "suspend":
        world.edit(suspend=not spec["suspend"])
    elif edit == "cancel":
        world.edit(cancel=True)


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_planning_again_after_apply_ends_in_a_plan_without_writes(
    spec: dict[str, Any], batch: int, data: st.DataObject
):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 5))):
        world.settle()
        assert not world.plan().actions
        change(data, world)


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_equal_views_give_equal_plans(spec: dict[str, Any], batch: int, data: st.DataObject):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 6))):
        assert world.plan() == copy.deepcopy(world).plan()
        world.step()
        change(data, world)


@settings(max_examples=12)
@given(specs, batches)
def test_killed_after_every_single_write_it_ends_in_the_same_place(
    spec: dict[str, Any], batch: int
):
    def run(world: World) -> World:
        world.settle()
        world.take_inventories()
        world.settle()
        return world

    calm = run(make_world(spec, batch))
    for killed_after in range(14):
        world = make_world(spec, batch)
        world.budget = killed_after
        for stage in (world.settle, world.take_inventories, world.settle):
            try:
                stage()
            except KilledError:
                world.budget = None
                stage()
        assert world.trials == calm.trials
        assert world.objects == calm.objects
        assert world.policies == calm.policies
        assert world.status.get("phase") == calm.status.get("phase")


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_nothing_is_created_unless_the_spec_is_accepted_and_wanted(
    spec: dict[str, Any], batch: int, data: st.DataObject
):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 8))):
        wanted = not (world.manifest["spec"]["cancel"] or world.manifest["spec"]["suspend"])
        plan = world.step()
        creates = [action for action in plan.actions if isinstance(action, CreateTrial)]
        if creates:
            assert wanted
            assert world.condition("Accepted")["status"] == "True"
            assert len(world.policies) == 2
            assert len(creates) <= batch
        change(data, world)


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_an_attempt_never_has_two_trials_of_one_generation(
    spec: dict[str, Any], batch: int, data: st.DataObject
):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 6))):
        world.settle()
        change(data, world)
    keys = [(t.task, t.agent, t.attempt, t.generation) for t in world.attempts()]
    assert len(keys) == len(set(keys))


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_counts_add_up_and_phases_follow_conditions(
    spec: dict[str, Any], batch: int, data: st.DataObject
):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 6))):
        world.settle()
        status = world.status
        counts = dict(status.get("trials") or {"total": 0})
        active = counts.pop("active", 0)  # what holds pods, whatever its phase
        assert counts.pop("total") == sum(counts.values())
        assert active == sum(counts.get(p, 0) for p in ("admitted", "running", "draining"))
        types = {c["type"] for c in status["conditions"]}
        reasons = {c["reason"] for c in status["conditions"]}
        assert types <= {kind.value for kind in RunCondition}
        assert reasons <= {reason.value for reason in Reason}
        complete = world.condition("Complete").get("status") == "True"
        ended = status["phase"] in (RunPhase.SUCCEEDED, RunPhase.CANCELLED)
        assert not ended or complete
        assert complete == ("completionTime" in status)
        change(data, world)


@settings(max_examples=30)
@given(specs, batches, st.data())
def test_a_run_that_goes_on_is_always_woken_again(
    spec: dict[str, Any], batch: int, data: st.DataObject
):
    world = make_world(spec, batch)
    for _ in range(data.draw(st.integers(1, 6))):
        plan = world.step()
        ended = world.condition("Complete").get("status") == "True"
        refused = world.condition("Accepted").get("status") == "False"
        assert plan.wake_after is not None or ended or refused
        change(data, world)
