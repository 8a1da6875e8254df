"""plan_run, step by step, in a world that does what plans say."""

from __future__ import annotations

from typing import Any

import pytest

from makers_run import NOW, RUN_UID, World, make_manifest, make_record, make_spec
from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.run_results import RunResults
from stayer_operator.api.conditions import Reason, TrialPhase
from stayer_operator.core.plan import CreateNetworkPolicy, CreateTrial, DeleteRun, Plan
from stayer_operator.core.run.needs import run_intent, run_needs
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.view import InventoryView


def make_world(**spec: Any) -> World:
    return World(manifest=make_manifest(make_spec(**spec)))


def shown(world: World) -> tuple[str, str]:
    return world.status["phase"], world.status["trialsSummary"]


def report(world: World) -> RunResults:
    return RunResults.from_bytes(world.objects[world.status["report"]])


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
        assert progressing["message"] == "2 trials wait: as they must"


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


class TestEnd:
    def test_numbers_of_a_run_that_went_well(self):
        world = make_world(attempts=2)
        world.start_all()
        first, *rest = world.attempts()
        world.end(first.name, resolved=True, regressions=2)
        for trial in rest:
            world.end(trial.name, resolved=False, regressions=1)
        world.settle()
        assert shown(world) == ("Succeeded", "4/4")
        assert world.status["resolvedRate"] == "0.25"
        assert world.status["regressions"] == 5
        assert world.status["trials"]["succeeded"] == 4
        assert world.condition("Complete")["status"] == "True"
        assert world.status["completionTime"]
        assert len(report(world).trials) == 4

    def test_a_run_without_any_valid_result_failed(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.FAILED, failure_mode="infra_error")
        world.settle()
        assert world.status["phase"] == "Failed"
        assert world.condition("Complete")["reason"] == "TrialsFailed"

    def test_counts_by_phase_while_it_goes_on(self):
        world = make_world(attempts=2)
        world.start_all()
        phases = [
            *(TrialPhase.ADMITTED, TrialPhase.RUNNING, TrialPhase.DRAINING),
            TrialPhase.SUCCEEDED,
        ]
        for trial, phase in zip(world.attempts(), phases, strict=True):
            world.end(trial.name, phase)
        world.now += 10
        world.settle()
        counts = world.status["trials"]
        assert [counts[p.value.lower()] for p in phases] == [1, 1, 1, 1]
        assert counts["total"] == 4
        assert shown(world) == ("Running", "1/4")
        assert world.condition("Progressing")["message"] == "1 admitted, 1 running, 1 draining"

    def test_nothing_is_written_once_it_has_ended(self):
        world = make_world()
        world.start_all()
        world.end_attempts(resolved=True)
        world.settle()
        world.now += 3600
        assert world.plan() == Plan()

    def test_ttl_deletes_the_run_and_nothing_earlier(self):
        world = make_world(retention={"ttlSecondsAfterFinished": 600})
        world.start_all()
        world.end_attempts(resolved=True)
        world.settle()
        assert world.plan().wake_after == pytest.approx(600, abs=20)
        world.now += 700
        plan = world.plan()
        assert [type(action) for action in plan.actions] == [DeleteRun]
        assert plan.actions[0].uid == RUN_UID

    def test_a_run_that_is_being_deleted_is_left_to_garbage_collection(self):
        world = make_world()
        world.start_all()
        world.manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert world.plan() == Plan()
        assert run_intent(world.manifest).cancel


class TestCancelAndSuspend:
    def test_cancel_creates_nothing_more_and_ends_when_all_have(self):
        world = make_world()
        world.start_all()
        world.edit(cancel=True)
        world.settle()
        assert world.condition("Progressing")["reason"] == "Cancelling"
        world.end_attempts(TrialPhase.CANCELLED)
        world.settle()
        assert shown(world) == ("Cancelled", "2/2")

    def test_a_run_that_is_cancelled_at_birth(self):
        world = make_world(cancel=True)
        world.settle()
        assert world.status["phase"] == "Cancelled"
        assert (world.trials, world.policies) == ({}, {})

    def test_attempts_that_never_existed_count_as_cancelled(self):
        world = make_world()
        world.settle()
        world.edit(cancel=True)
        for trial in list(world.trials.values()):
            world.end(trial.name, TrialPhase.CANCELLED)
        world.settle()
        assert world.status["trials"]["cancelled"] == 2

    def test_suspended_at_birth_nothing_is_created(self):
        world = make_world(suspend=True)
        world.settle()
        assert world.status["phase"] == "Suspended"
        assert (world.trials, world.policies) == ({}, {})
        world.edit(suspend=False)
        world.start_all()
        assert len(world.attempts()) == 2

    def test_running_trials_of_a_suspended_run_go_on(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.RUNNING)
        world.edit(suspend=True)
        world.settle()
        assert world.status["phase"] == "Running"
        world.end_attempts(resolved=True)
        world.settle()
        assert world.status["phase"] == "Succeeded"


class TestGrowth:
    def test_added_attempts_get_trials_of_their_own(self):
        world = make_world()
        world.start_all()
        world.end_attempts(resolved=True)
        world.settle()
        before = set(world.trials)
        world.edit(attempts=3)
        world.settle()
        assert before < set(world.trials)
        assert sorted(t.attempt for t in world.attempts()) == [1, 1, 2, 2, 3, 3]
        assert world.condition("Complete")["status"] == "False"
        assert "completionTime" not in world.status

    def test_added_agents_are_pinned_and_run(self):
        world = make_world()
        world.start_all()
        world.edit(
            matrix={
                "agents": [
                    {"name": "oracle", "harness": "oracle"},
                    {"name": "nop", "harness": "nop"},
                ]
            }
        )
        world.settle()
        assert len(world.attempts()) == 4
        assert "spec.matrix.agents/nop" in world.status["pinned"]

    def test_removed_attempts_are_refused(self):
        world = make_world(attempts=2)
        world.start_all()
        world.edit(attempts=1)
        world.settle()
        assert world.condition("Accepted")["reason"] == "ImmutableFieldChanged"
        assert "2 attempts with trials" in world.condition("Accepted")["message"]

    @pytest.mark.parametrize(
        ("which", "rerun"),
        [
            (["infra_error"], {"failed-infra"}),
            (["failed"], {"timed-out"}),
            (["cancelled"], {"cancelled"}),
            (["unresolved"], {"timed-out", "unresolved"}),
            (["infra_error", "cancelled"], {"failed-infra", "cancelled"}),
        ],
    )
    def test_rerun_takes_the_outcomes_that_are_named(self, which: list[str], rerun: set[str]):
        world = make_world(attempts=5, tasks={**make_spec()["tasks"], "include": ["parser"]})
        world.start_all()
        ends: list[tuple[str, TrialPhase, dict[str, Any]]] = [
            ("failed-infra", TrialPhase.FAILED, {"failure_mode": "infra_error"}),
            (
                "timed-out",
                TrialPhase.SUCCEEDED,
                {"failure_mode": "agent_timeout", "resolved": False},
            ),
            ("cancelled", TrialPhase.CANCELLED, {}),
            ("unresolved", TrialPhase.SUCCEEDED, {"failure_mode": "none", "resolved": False}),
            ("resolved", TrialPhase.SUCCEEDED, {"failure_mode": "none", "resolved": True}),
        ]
        attempts = {}
        for trial, (label, phase, changes) in zip(world.attempts(), ends, strict=True):
            world.end(trial.name, phase, **changes)
            attempts[trial.attempt] = label
        world.settle()

        world.edit(rerun={"generation": 1, "which": which})
        world.settle()

        again = [t for t in world.attempts() if t.generation == 1]
        assert {attempts[t.attempt] for t in again} == rerun

    def test_a_rerun_happens_once_per_generation_and_the_newest_counts(self):
        world = make_world(tasks={**make_spec()["tasks"], "include": ["parser"]})
        world.start_all()
        world.end_attempts(TrialPhase.FAILED)
        world.settle()
        world.edit(rerun={"generation": 1})
        world.settle()
        assert shown(world)[1] == "0/1"
        world.end_attempts(TrialPhase.FAILED)
        world.settle()
        assert len(world.attempts()) == 2
        world.edit(rerun={"generation": 2})
        world.settle()
        world.end_attempts(resolved=True)
        world.settle()
        assert len(world.attempts()) == 3
        assert (shown(world), world.status["resolvedRate"]) == (("Succeeded", "1/1"), "1.00")
        assert [line.phase for line in report(world).trials] == ["Succeeded"]


class TestStatusWrites:
    def test_counts_are_written_every_few_seconds_at_most(self):
        world = make_world(attempts=4)
        world.start_all()
        world.end_attempts(TrialPhase.RUNNING)
        world.settle()
        before = world.status_writes
        for trial in world.attempts()[:5]:
            world.end(trial.name, resolved=True)
            world.step()
        assert world.status_writes == before + 1  # the first; the four after it wait
        assert world.status["trialsSummary"] == "1/8"
        assert 0 < (world.plan().wake_after or 0) <= world.settings.status_seconds
        world.now += world.settings.status_seconds
        world.step()
        assert world.status_writes == before + 2
        assert world.status["trialsSummary"] == "5/8"

    def test_what_matters_is_written_at_once(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.RUNNING)
        world.step()
        assert world.status["phase"] == "Running"

    def test_conditions_carry_the_generation_and_keep_their_transition_time(self):
        world = make_world()
        world.start_all()
        before = world.condition("Accepted")["lastTransitionTime"]
        world.now = NOW + 1000
        world.edit(parallelism=9)
        world.settle()
        accepted = world.condition("Accepted")
        assert accepted["lastTransitionTime"] == before
        assert accepted["observedGeneration"] == 2 == world.status["observedGeneration"]

    def test_an_event_is_not_repeated(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.RUNNING)
        world.settle()
        reasons = [event.reason for event in world.events]
        assert len(reasons) == len(set(reasons))


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
