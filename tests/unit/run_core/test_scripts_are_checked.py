"""The script of the scripted harness."""

from __future__ import annotations

import pytest

from stayer_evaluator.records.script import ApplyDiff, ScriptError, Wait, parse_script

FULL = """
steps:
  - applyDiff: {unit: parser}
  - applyDiff: {diff: "--- a\\n+++ b\\n", patchOf: lexer}
  - applyDiff: {unit: lexer, reverse: true}
  - writeFile: {path: a/b.txt, content: hello, mode: "0755"}
  - run: {command: ["bash", "-c", "true"], timeoutSeconds: 60}
  - wait: {seconds: 0.5}
  - exit: {code: 3}
rounds:
  2:
    - hang: {}
"""


def test_every_step_is_read_in_order():
    script = parse_script(FULL)
    kinds = [type(step.action).__name__ for step in script.of_round(1)]
    assert kinds == [
        *("ApplyDiff", "ApplyDiff", "ApplyDiff", "WriteFile", "RunCommand", "Wait", "Exit")
    ]
    assert [type(step.action).__name__ for step in script.of_round(2)] == ["Hang"]
    assert script.of_round(3) == ()


def test_gold_units_are_those_whose_patch_is_applied():
    assert parse_script(FULL).gold_units == ("lexer", "parser")


def test_defaults():
    script = parse_script("steps: [{applyDiff: {unit: a}}, {wait: {seconds: 1}}]")
    assert script.of_round(1)[0].action == ApplyDiff(unit="a", reverse=False)
    assert script.of_round(1)[1].action == Wait(seconds=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps: [", "not YAML"),
        ("", "found nothing"),
        ("just words", "found str"),
        ("steps: []", "found no steps"),
        ("steps: [{}]", "an empty step"),
        ("steps: [{wait: {seconds: 1}, exit: {code: 0}}]", "found wait and exit"),
        ("steps: [{sleep: {seconds: 1}}]", "unknown step, accepted: applyDiff"),
        ("steps: [{wait: {secs: 1}}]", "steps[0].wait.secs: unknown field"),
        ("steps: [{applyDiff: {}}]", "found neither of unit and diff"),
        ("steps: [{applyDiff: {unit: a, diff: b}}]", "found both of unit and diff"),
        ("steps: [{writeFile: {path: ../x}}]", "a path inside the workspace"),
        ("steps: [{writeFile: {path: /etc/x}}]", "a path inside the workspace"),
        ("steps: [{exit: {code: 256}}]", "steps[0].exit.code"),
        ("rounds: {0: [{hang: {}}]}", "rounds"),
        ("{steps: [{hang: {}}], rounds: {1: [{hang: {}}]}}", "found steps and rounds.1"),
        ("step: [{hang: {}}]", "step: unknown field"),
    ],
)
def test_mistakes_are_named(text: str, words: str):
    with pytest.raises(ScriptError) as caught:
        parse_script(text)
    assert words in str(caught.value)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ScriptError) as caught:
        parse_script("steps: [{wait: {}}, {exit: {code: -1}}, {jump: {}}]")
    assert len(caught.value.problems) == 3
