"""`stayer run cancel` and `rerun`: what they refuse, and that they then write nothing."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from stayer_operator.cli.again import go_again
from stayer_operator.cli.main import app

COMPLETE = [{"type": "Complete", "status": "True"}]
UID = {"labels": {"stayer.dev/run-uid": "uid-of-small"}}


def put_run(api, phase: str, *, complete: bool = True, observed: int = 1, **spec: Any) -> None:
    conditions = COMPLETE if complete else []
    status = {"phase": phase, "conditions": conditions, "observedGeneration": observed}
    api.put("benchmarkruns", "small", spec=spec, status=status)


def put_trial(api, name: str, phase: str, attempt: int = 1, **more: Any) -> None:
    spec = {
        "kind": more.pop("kind", "attempt"), "task": {"name": "t", "digest": "d"}, "agent": "a",
        "attempt": attempt, "generation": more.pop("generation", 0),
    }  # fmt: skip
    api.put("trials", name, metadata=UID, spec=spec, status={"phase": phase, **more})


def call(*arguments: str) -> str:
    """What the command printed, or the error that it ended with."""
    said = CliRunner().invoke(app, ["run", *arguments])
    return str(said.exception) if said.exception else said.stdout.strip()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Cancelled"])
def test_a_run_that_has_ended_is_not_cancelled(api, phase):
    put_run(api, phase)

    assert call("cancel", "small") == f"run small has ended already ({phase})"
    assert api.writes == []


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"phase": "Running", "complete": False}, id="it runs"),
        pytest.param({"phase": "Failed", "complete": False}, id="refused, may yet be mended"),
        pytest.param({"phase": "Succeeded", "observed": 0}, id="changed since it ended"),
    ],
)
def test_a_run_that_may_go_on_is_cancelled_and_not_run_again(api, state):
    put_run(api, **state)

    assert "run small has not ended" in call("rerun", "small")
    assert api.writes == []
    assert call("cancel", "small") == "run small: cancelling"
    assert api.run()["spec"] == {"cancel": True}


def test_a_cancelled_run_cannot_go_on(api):
    put_run(api, "Cancelled", cancel=True)
    put_trial(api, "t1", "Cancelled")

    words = "run small was cancelled and cannot go on; apply a new run instead"
    assert call("rerun", "small", "--which", "cancelled") == words
    assert api.writes == []


def test_nothing_is_written_where_no_trial_matches(api):
    put_run(api, "Succeeded")
    put_trial(api, "t1", "Succeeded", resolved=True, failureMode="none")

    assert call("rerun", "small") == "run small: 0 trials match infra_error: nothing to do"
    assert api.writes == []


def test_a_rerun_says_how_many_trials_go_again(api):
    put_run(api, "Succeeded", rerun={"generation": 3})
    put_trial(api, "t1", "Failed", 1)
    put_trial(api, "t2", "Succeeded", 2, resolved=False, failureMode="agent_oom")

    one = call("rerun", "small")
    api.run()["status"]["observedGeneration"] = 2
    two = call("rerun", "small", "--which", "infra_error", "--which", "failed")

    assert one == "run small: 1 trial matches infra_error and goes again (rerun 4)"
    assert two == "run small: 2 trials match infra_error or failed and go again (rerun 5)"
    assert api.run()["spec"]["rerun"] == {"generation": 5, "which": ["infra_error", "failed"]}


def test_only_the_newest_trial_of_an_attempt_and_open_inventories_count(api):
    put_trial(api, "old", "Failed", 1)
    put_trial(api, "new", "Succeeded", 1, generation=1, resolved=True)
    put_trial(api, "inventory", "Failed", kind="inventory")
    trials = [found for (_, plural, _), found in api.objects.items() if plural == "trials"]

    found = go_again(trials, frozenset({"infra_error"}))

    assert [trial["metadata"]["name"] for trial in found] == ["inventory"]
