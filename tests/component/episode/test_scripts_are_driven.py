"""Scripted episodes with the real runner: every step, every way a round ends."""

import asyncio
import json

import pytest

from makers_episode import (
    GOLD,
    PREFIX,
    make_document,
    make_pod,
    make_store,
    play,
    read_queue,
    read_trace,
    snapshots,
    tree_of,
)
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.records.trial import LoopProfile, SnapshotSettings, Timeouts

PARSER = "{applyDiff: {unit: parser}}"


def end_of(store):
    end = read_queue(store)[-1]
    assert isinstance(end, EndEntry)
    return end


def run(script, **changes):
    """A whole episode of the script; its store, its pod's files are gone."""
    document = make_document("scripted", script, **changes)
    store = make_store(document)
    with make_pod(document) as pod:
        assert asyncio.run(play(pod, store)) == 0
    return store


def test_every_kind_of_step_leaves_what_it_says():
    diff = json.dumps(GOLD["engine"])
    store = run(f"""
steps:
  - applyDiff: {{unit: parser}}
  - applyDiff: {{diff: {diff}, patchOf: engine}}
  - writeFile: {{path: bin/hello, content: "#!/bin/sh\\n", mode: "0755"}}
  - run: {{command: [sh, -c, 'echo "$IMAGE $TEST_DIR $HOME" > env; ls $TEST_DIR > tests; exit 9']}}
  - wait: {{seconds: 0.01}}
  - applyDiff: {{unit: parser, reverse: true}}
""")

    taken = snapshots(store)
    assert [entry.episode.step for entry in taken] == [None, 0, 1, 2, 3, 5]
    assert [entry.implemented for entry in taken[1:3]] == [("parser",), ("engine", "parser")]
    files = asyncio.run(tree_of(store, taken[-1]))
    assert files["src/parser.py"] == "def parse(text):\n    raise NotImplementedError\n"
    assert files["requirement_patches/parser.diff"] == GOLD["parser"]
    assert files["bin/hello"] == "#!/bin/sh\n"
    image, tests, home = files["env"].split()
    assert image == "yes"
    assert tests.endswith("/suite")
    assert home.endswith("/home")
    assert files["tests"] == "parser\n"
    assert end_of(store).failure_mode == "none"


def test_hidden_tests_are_not_in_the_pod():
    store = run(
        "steps: [{run: {command: [sh, -c, 'echo \"[$TEST_DIR]\" > env']}}]",
        test_visibility="hidden",
    )

    files = asyncio.run(tree_of(store, snapshots(store)[-1]))
    assert files["env"] == "[]\n"


@pytest.mark.parametrize(
    ("steps", "failure", "message", "done"),
    [
        ("[{exit: {code: 0}}, {hang: {}}]", "none", "rounds done: 1", 0),
        ("[{exit: {code: 3}}, {hang: {}}]", "unknown_agent_error", "unknown_agent_error", 0),
        ("[{exit: {failureMode: agent_auth_error}}]", "agent_auth_error", "auth", 0),
        ("[{wait: {seconds: 60}}]", "agent_timeout", "", 0),
        ("[{hang: {}}]", "agent_timeout", "", 0),
        ("[{run: {command: [sleep, '60'], timeoutSeconds: 0.2}}, {exit: {}}]", "none", "", 0),
        (f"[{PARSER}, {PARSER}]", "unknown_agent_error", "does not apply", 1),
        ("[{writeFile: {path: README.md/x, content: y}}]", "unknown_agent_error", "", 0),
    ],
)  # fmt: skip
def test_a_round_ends_as_its_script_says(steps, failure, message, done):
    store = run(f"steps: {steps}", timeouts=Timeouts(agent_seconds=2))

    end = end_of(store)
    assert end.failure_mode.value == failure
    assert message in end.message
    assert len(snapshots(store)) == 1 + done
    assert end.episode.spent_seconds < 10
    assert [record.failure_mode for record in end.episode.rounds] == [failure]


def test_a_diff_that_does_not_apply_is_explained_in_the_trace():
    store = run("steps: [{applyDiff: {unit: report}}, {applyDiff: {unit: report}}]")

    ended = next(event for event in read_trace(store) if event.type == "round_ended")
    assert ended.data["message"] == (
        "step 1 (applyDiff): runner apply: -: src/report.py: src/report.py exists already "
        "(line 1 of the diff)"
    )
    assert [step["exit_code"] for step in ended.data["steps"]] == [0, 1]


def test_rounds_go_on_while_requirements_are_left():
    store = run(
        """
steps: [{applyDiff: {unit: parser}}]
rounds:
  2: [{applyDiff: {unit: engine}}, {applyDiff: {unit: report}}]
  3: [{hang: {}}]
""",
        loop=LoopProfile(outer_loop_count=3),
        timeouts=Timeouts(agent_seconds=600),
    )

    assert [(e.episode.round, e.episode.step) for e in snapshots(store)] == [
        (1, None), (1, 0), (2, 0), (2, 1),
    ]  # fmt: skip
    end = end_of(store)
    assert [(r.number, r.cause, r.changed) for r in end.episode.rounds] == [
        (1, "first", True),
        (2, "external_restart", True),
    ]
    assert end.message == "every requirement has its patch file"


def test_an_unbounded_loop_stops_after_three_idle_rounds():
    store = run(
        "steps: [{applyDiff: {unit: parser}}]",
        loop=LoopProfile(outer_loop_count=0),
        timeouts=Timeouts(agent_seconds=600),
    )

    assert [r.changed for r in end_of(store).episode.rounds] == [True, False, False, False]


def test_rate_limits_are_waited_for_and_recorded_apart_from_progress():
    store = run(
        """
steps:
  - applyDiff: {unit: parser}
  - exit: {failureMode: agent_rate_limited}
  - exit: {failureMode: agent_rate_limited}
  - applyDiff: {unit: engine}
""",
        loop=LoopProfile(
            outer_loop_count=1, rate_limit_retries_per_round=2, rate_limit_backoff_seconds=1
        ),
    )

    end = end_of(store)
    assert end.failure_mode == "none"
    assert end.episode.rounds[0].rate_limit_retries == 2
    assert 3 <= end.episode.spent_seconds < 60
    waits = [e.data["wait_seconds"] for e in read_trace(store) if e.type == "rate_limited"]
    assert waits == [1, 2]


def test_a_rate_limit_that_lasts_ends_the_round():
    store = run(
        f"steps: {[{'exit': {'failureMode': 'agent_rate_limited'}}] * 3}",
        loop=LoopProfile(
            outer_loop_count=1, rate_limit_retries_per_round=1, rate_limit_backoff_seconds=1
        ),
    )

    assert end_of(store).failure_mode == "agent_rate_limited"


def test_what_a_step_leaves_behind_is_dead_before_the_next():
    beat = "while :; do date +%N > beat; sleep 0.01; done"
    store = run(f"""
steps:
  - run: {{command: [sh, -c, '(setsid sh -c "{beat}" &); sleep 0.3']}}
  - run: {{command: [sh, -c, 'cp beat first; sleep 0.3; cmp beat first && echo quiet > verdict']}}
""")

    files = asyncio.run(tree_of(store, snapshots(store)[-1]))
    assert files["verdict"] == "quiet\n"


def test_timed_samples_are_taken_while_a_step_runs():
    script = "echo 1 > a; sleep 1.6; echo 2 > b; sleep 1.6"
    store = run(
        f"steps: [{{run: {{command: [sh, -c, '{script}']}}}}, {{applyDiff: {{unit: parser}}}}]",
        snapshots=SnapshotSettings(interval_seconds=1),
    )

    taken = snapshots(store)
    assert [entry.episode.step for entry in taken] == [None, None, None, 0, 1]
    assert taken[2].tree == taken[3].tree  # the mark alone, as samples were taken in the step
    assert taken[0].tree != taken[1].tree != taken[2].tree


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("steps: [{dance: {}}]", "script: steps[0]: unknown step 'dance'"),
        ("steps: [{applyDiff: {unit: nobody}}]", "unknown units ['nobody']"),
    ],
)
def test_a_script_that_cannot_be_read_is_a_failed_start(script, message):
    end = end_of(run(script))

    assert end.failure_mode == "agent_startup_error"
    assert message in end.message


def test_the_trace_and_the_puts_of_an_episode():
    store = run("steps: [{applyDiff: {unit: parser}}, {applyDiff: {unit: engine}}]")

    events = read_trace(store)
    assert [(e.type, e.snapshot) for e in events] == [
        ("trial_started", None),
        ("snapshot_taken", 0),
        ("round_started", 0),
        ("snapshot_taken", 1),
        ("implemented", 1),
        ("snapshot_taken", 2),
        ("implemented", 2),
        ("round_ended", 2),
    ]
    assert events[0].data["trial"]["task"]["name"] == "calc"
    assert "script" not in events[0].data["trial"]["agent"]
    written = [key.removeprefix(PREFIX).split("/")[0] for key in store.objects if PREFIX in key]
    counts = {kind: written.count(kind) for kind in set(written)}
    assert counts["queue"] == 5  # epoch, three snapshots, end
    assert counts["transcripts"] == 1
    assert counts["resume"] <= 2
    assert counts["trace"] <= 5
