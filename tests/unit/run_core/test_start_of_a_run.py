"""plan_run from the first look to attempts: what comes first, what is waited for and refused."""

from __future__ import annotations

from typing import Any

import pytest

from makers_run import (
    World,
    make_manifest,
    make_record,
    make_spec,
    make_world,
    report,
    shown,
)
from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import Reason, TrialPhase
from stayer_operator.core.plan import CreateNetworkPolicy, CreateTrial
from stayer_operator.core.run.needs import run_needs
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.view import InventoryView


class TestStart:
    def test_the_task_list_is_stored_before_anything_is_created(self):
        world = make_world()
        plan = world.step()
        assert [type(action).__name__ for action in plan.actions] == ["PutObject"]
        assert world.trials == {}

    def test_pins_are_written_before_anything_is_created(self):
        world = make_world()
        world.step()
        plan = world.step()
        assert plan.actions == ()
        assert world.status["pinned"]

    def test_policies_come_first_then_inventories_and_no_attempt_yet(self):
        world = make_world()
        world.step()
        world.step()
        plan = world.step()
        kinds = [type(action) for action in plan.actions]
        assert kinds[:2] == [CreateNetworkPolicy, CreateNetworkPolicy]
        assert {t.kind for t in world.trials.values()} == {TrialKind.INVENTORY}
        assert len(world.trials) == 2

    def test_while_inventories_are_taken_the_conditions_say_so(self):
        world = make_world()
        world.settle()
        ready = world.condition("TasksReady")
        assert (ready["status"], ready["reason"]) == ("False", "InventoryPending")
        assert "ledger, parser" in ready["message"]
        assert world.condition("Progressing")["reason"] == "InventoryPending"
        assert shown(world) == ("Pending", "0/2")

    def test_attempts_follow_their_own_task_s_inventory(self):
        world = make_world()
        world.inventories[make_record("parser").digest] = InventoryView(accepted=True)
        world.settle()
        assert [t.task for t in world.attempts()] == ["parser"]
        assert len(world.trials) == 2

    def test_existing_inventories_are_not_taken_again(self):
        world = make_world()
        for task in ("ledger", "parser"):
            world.inventories[make_record(task).digest] = InventoryView(accepted=True)
        world.settle()
        assert {t.kind for t in world.trials.values()} == {TrialKind.ATTEMPT}

    def test_a_later_push_to_the_task_set_changes_nothing(self):
        world = make_world()
        world.step()
        world.source = {"parser": make_record("parser", digest="f" * 64).to_bytes()}
        world.start_all()
        assert {t.task for t in world.attempts()} == {"ledger", "parser"}
        assert "f" * 64 not in {t.task_digest for t in world.trials.values()}

    def test_thousands_of_trials_are_created_in_many_small_plans(self):
        world = make_world(attempts=100)
        world.settings = RunSettings(trials_per_plan=7)
        world.settle()
        world.take_inventories()
        plan = world.step()
        assert sum(isinstance(action, CreateTrial) for action in plan.actions) == 7
        assert plan.wake_after == pytest.approx(0.1)
        world.settle()
        assert len(world.attempts()) == 200


class TestWaiting:
    def test_a_missing_task_set_is_named_and_looked_for_again(self):
        world = make_world()
        world.source = None
        world.settle()
        ready = world.condition("TasksReady")
        assert (ready["reason"], ready["message"]) == (
            "TaskSetNotFound",
            "no object below tasksets/demo/",
        )
        assert world.plan().wake_after == world.settings.retry_seconds
        assert world.condition("Accepted")["status"] == "True"
        assert world.status["phase"] == "Pending"

    def test_a_task_set_that_appears_later_starts_the_run(self):
        world = make_world()
        world.source = None
        world.settle()
        world.source = {"parser": make_record().to_bytes()}
        world.start_all()
        assert len(world.attempts()) == 1

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"{", "parser.json"),
            (make_record("other").to_bytes(), 'parser.json.name: found "other", accepted: parser'),
        ],
        ids=["a record that is no JSON", "a record under another name"],
    )
    def test_a_broken_record_is_named(self, data: bytes, words: str):
        world = make_world()
        world.source = {"parser": data}
        world.settle()
        assert world.condition("TasksReady")["reason"] == "TaskSetInvalid"
        assert words in world.condition("TasksReady")["message"]
        assert world.trials == {}

    def test_a_broken_record_that_is_not_selected_harms_nobody(self):
        world = make_world(tasks={**make_spec()["tasks"], "include": ["parser"]})
        world.source = {"parser": make_record().to_bytes(), "broken": b"{"}
        world.start_all()
        assert [t.task for t in world.attempts()] == ["parser"]

    def test_a_missing_script_waits_for_its_config_map(self):
        agent = {
            "name": "w",
            "harness": "scripted",
            "scriptConfigMap": {"name": "scripts", "key": "w"},
        }
        world = make_world(matrix={"agents": [agent]})
        world.settle()
        assert "key w of ConfigMap scripts" in world.condition("Accepted")["message"]
        assert world.status["phase"] == "Pending"
        assert world.plan().wake_after == world.settings.retry_seconds
        world.scripts["scripts", "w"] = "steps: [{wait: {seconds: 1}}]"
        world.start_all()
        assert len(world.attempts()) == 2

    def test_what_most_trials_wait_for_is_said(self):
        world = make_world()
        world.start_all()
        world.waits = Reason.SHAPE_UNSCHEDULABLE
        world.settle()
        progressing = world.condition("Progressing")
        assert progressing["status"] == "False"
        assert progressing["reason"] == "ShapeUnschedulable"
        assert progressing["message"] == "2 trials waiting: as they must"


class TestRefusal:
    def test_a_rejected_task_rejects_the_run_before_any_attempt(self):
        world = make_world()
        world.settle()
        world.take_inventories(accepted=False)
        world.settle()
        ready = world.condition("TasksReady")
        assert ready["reason"] == "TaskRejected"
        assert "lexer: gold fails" in ready["message"]
        assert world.attempts() == []
        assert world.status["phase"] == "Failed"
        assert world.condition("Complete")["reason"] == "TaskRejected"
        assert "TaskRejected" in [e.reason for e in world.events if e.type == "Warning"]

    def test_a_rejection_stops_creation_and_lets_started_trials_end(self):
        world = make_world()
        world.inventories[make_record("ledger").digest] = InventoryView(accepted=True)
        world.settle()
        world.take_inventories(accepted=False)
        world.end_attempts(TrialPhase.RUNNING)
        world.settle()
        assert world.status["phase"] == "Running"
        world.end_attempts(resolved=True)
        world.settle()
        assert shown(world) == ("Failed", "1/2")
        assert [line.phase for line in report(world).trials] == ["Succeeded", "Missing"]

    def test_an_inventory_that_cannot_be_taken_ends_the_run_and_can_be_rerun(self):
        world = make_world()
        world.settle()
        for trial in list(world.trials.values()):
            world.end(trial.name, TrialPhase.FAILED, message="image pull")
        world.settle()
        assert world.condition("TasksReady")["reason"] == "InventoryFailed"
        assert "ledger: image pull" in world.condition("TasksReady")["message"]
        assert world.status["phase"] == "Failed"

        world.edit(rerun={"generation": 1})
        world.start_all()

        assert len(world.attempts()) == 2
        assert world.condition("Complete")["status"] == "False"

    def test_a_mended_spec_starts(self):
        world = make_world(matrix={"agents": [{"name": "x", "harness": "nobody"}]})
        world.settle()
        assert world.status["phase"] == "Failed"
        world.edit(matrix={"agents": [{"name": "x", "harness": "nop"}]})
        world.start_all()
        assert len(world.attempts()) == 2
        assert world.condition("Accepted")["status"] == "True"

    def test_a_mistake_in_the_middle_leaves_running_trials_alone(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.RUNNING)
        world.edit(
            matrix={
                "agents": [
                    {"name": "oracle", "harness": "oracle"},
                    {"name": "new", "harness": "nobody"},
                ]
            }
        )
        world.settle()
        assert world.status["phase"] == "Running"
        assert world.condition("Accepted")["status"] == "False"
        assert len(world.attempts()) == 2


class TestNeeds:
    @pytest.mark.parametrize(
        "spec",
        [
            {},
            {"tasks": None},
            {"tasks": {"source": "x"}},
            {"tasks": {"source": {"s3": {}, "configMap": {}}}},
            {"matrix": {"agents": {"name": "x"}}},
            {"matrix": {"agents": ["x", {"scriptConfigMap": []}]}},
        ],
    )
    def test_nonsense_needs_nothing_and_is_refused(self, spec: dict[str, Any]):
        world = World(manifest=make_manifest(spec))
        needs = run_needs(world.manifest)
        assert (needs.source, needs.scripts) == (None, ())
        world.settle()
        assert world.condition("Accepted")["status"] == "False"
        assert world.trials == {}
