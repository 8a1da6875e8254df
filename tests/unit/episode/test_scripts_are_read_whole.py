"""YAML scripts: what is accepted, and that every problem is named at once with its place."""

import pytest

from stayer_evaluator.episode.steps import (
    ApplyDiff,
    BadScript,
    Exit,
    Hang,
    Run,
    Wait,
    WriteFile,
    parse_script,
)
from stayer_evaluator.records.outcomes import FailureMode

EVERYTHING = """
steps:
  - applyDiff: {unit: parser}
  - applyDiff: {diff: "--- a/x", patchOf: engine}
  - applyDiff: {unit: parser, reverse: true}
  - writeFile: {path: a/b.txt, content: "hi", mode: "0755"}
  - run: {command: ["bash", "-c", "make"], timeoutSeconds: 60}
  - wait: {seconds: 5}
  - exit: {code: 3}
  - hang: {}
rounds:
  2:
    - exit: {failureMode: agent_rate_limited}
    - hang:
"""


def test_every_kind_of_step_is_understood():
    script = parse_script(EVERYTHING)

    assert script.steps(1) == (
        ApplyDiff(unit="parser"),
        ApplyDiff(diff="--- a/x", patch_of=("engine",)),
        ApplyDiff(unit="parser", reverse=True),
        WriteFile(path="a/b.txt", content="hi", mode="0755"),
        Run(command=("bash", "-c", "make"), timeout_seconds=60),
        Wait(seconds=5),
        Exit(code=3),
        Hang(),
    )
    assert script.steps(2) == (Exit(failure_mode=FailureMode.AGENT_RATE_LIMITED), Hang())
    assert script.steps(3) == ()
    assert script.units == ("parser",)


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (Exit(), FailureMode.NONE),
        (Exit(code=3), FailureMode.UNKNOWN_AGENT_ERROR),
        (Exit(code=1, failure_mode=FailureMode.AGENT_AUTH_ERROR), FailureMode.AGENT_AUTH_ERROR),
    ],
)
def test_an_exit_code_means_none_or_unknown_unless_the_script_says_more(step, outcome):
    assert step.outcome is outcome


def test_all_problems_are_named_at_once_with_their_places():
    text = """
steps:
  - applyDiff: {}
  - dance: {}
  - run: {command: [], timeoutSeconds: -1}
  - writeFile: {path: ../x, content: "", mode: rw}
  - just text
  - {run: {command: [a]}, wait: {seconds: 1}}
  - wait: {second: 1}
rounds:
  0: []
  1: []
  two: []
  3: {}
extra: 1
"""
    with pytest.raises(BadScript) as caught:
        parse_script(text)

    problems = "\n".join(caught.value.problems)
    for place in (
        "steps[0].applyDiff: ",
        "steps[1]: unknown step 'dance'; accepted are applyDiff",
        "steps[2].run.command: ",
        "steps[2].run.timeoutSeconds: ",
        "steps[3].writeFile.path: ",
        "steps[3].writeFile.mode: ",
        "steps[4]: a step is one mapping",
        "steps[5]: a step is one mapping",
        "steps[6].wait.seconds: ",
        "steps[6].wait.second: ",
        "rounds: 0 is no round number",
        "rounds.1: round 1 stands under steps already",
        "rounds: 'two' is no round number",
        "rounds.3 is a dict, must be a list",
        "unknown field 'extra'",
    ):
        assert place in problems, problems


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "steps: 5", "rounds: []"])
def test_what_is_no_script_is_refused(text):
    with pytest.raises(BadScript):
        parse_script(text)


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "a/../b", "a//b", "", "./a"])
def test_files_are_written_below_the_workspace_only(path):
    with pytest.raises(BadScript):
        parse_script(f"steps: [{{writeFile: {{path: {path!r}, content: x}}}}]")


def test_a_script_without_steps_is_fine():
    assert parse_script("steps: []").steps(1) == ()
