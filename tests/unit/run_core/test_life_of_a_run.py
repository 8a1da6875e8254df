"""plan_run while trials are under way: numbers, suspend and cancel, the end."""

from __future__ import annotations

import pytest

from makers_run import (
    NOW,
    RUN_UID,
    make_world,
    report,
    shown,
)
from stayer_operator.api.conditions import TrialPhase
from stayer_operator.core.plan import DeleteRun, Plan
from stayer_operator.core.run.needs import run_intent


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
        # No model is null, as in trial.json, not the name that the matrix gives it.
        assert {line.model for line in report(world).trials} == {None}

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

    def test_a_run_that_had_ended_keeps_its_end(self):
        world = make_world()
        world.start_all()
        world.end_attempts(TrialPhase.SUCCEEDED)
        world.settle()
        ended = shown(world)
        world.edit(cancel=True)
        world.settle()
        assert shown(world) == ended == ("Succeeded", "2/2")
        assert world.condition("Complete")["reason"] == "TrialsFinished"

    def test_a_run_of_which_one_trial_had_ended_is_cancelled(self):
        world = make_world()
        world.start_all()
        first, second = [t.name for t in world.trials.values() if t.kind == "attempt"]
        world.end(first, TrialPhase.SUCCEEDED)
        world.edit(cancel=True)
        world.end(second, TrialPhase.CANCELLED)
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
