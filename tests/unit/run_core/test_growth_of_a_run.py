"""plan_run when a person adds attempts and agents or wants trials again."""

from __future__ import annotations

from typing import Any

import pytest

from makers_run import (
    make_spec,
    make_world,
    report,
    shown,
)
from stayer_operator.api.conditions import TrialPhase


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
