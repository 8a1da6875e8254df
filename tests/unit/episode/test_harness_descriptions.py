"""Descriptions of harnesses, and the catalog of those that are built in."""

import pytest

from stayer_evaluator.harnesses.catalog import harnesses
from stayer_evaluator.harnesses.describe import (
    BadDescription,
    CommandHarness,
    parse_description,
    render,
)
from stayer_evaluator.harnesses.transcripts import UnknownParser, parser
from stayer_evaluator.harnesses.transcripts.account import Account
from stayer_evaluator.records.outcomes import FailureMode

COMMAND = """
name: some-cli
kind: command
command: [some-cli, -p, "${prompt}", --model, "${model}", --cost, "$$5"]
stdin: nothing
env: {SOME_HOME: "${home}/.some"}
files:
  - path: .some/config.json
    content: '{"model": "${model}"}'
exitCodes: {53: budget_exhausted}
transcript: {parser: none, path: .some/log.jsonl}
"""


def test_the_built_in_harnesses():
    assert tuple(harnesses()) == ("nop", "oracle", "scripted")
    assert {name: harness.gold for name, harness in harnesses().items()} == {
        "nop": "never",
        "oracle": "always",
        "scripted": "by-script",
    }
    assert [h.name for h in harnesses().values() if h.script == "required"] == ["scripted"]


def test_every_built_in_harness_names_a_parser_that_is_there():
    for harness in harnesses().values():
        if isinstance(harness, CommandHarness):
            parser(harness.transcript.parser)


def test_a_command_is_described_without_code():
    harness = parse_description(COMMAND, "some-cli.yaml")

    assert isinstance(harness, CommandHarness)
    assert harness.exit_codes == {53: FailureMode.BUDGET_EXHAUSTED}
    values = {"prompt": "do $this", "model": "m"}
    assert [render(part, values) for part in harness.command] == [
        "some-cli", "-p", "do $this", "--model", "m", "--cost", "$5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("kind: [", ["x.yaml", "no YAML"]),
        ("name: x", ["x.yaml", "kind"]),
        ("{name: x, kind: dance}", ["x.yaml", "dance"]),
        ("{name: X, kind: steps, steps: all, colour: red}", ["name", "steps", "colour"]),
        ("{name: x, kind: command, command: []}", ["command"]),
        ("{name: x, kind: command, command: ['$nobody ${home}']}", ["nobody", "accepted are"]),
        ("{name: x, kind: command, command: ['5 $']}", ["no template"]),
        (
            "{name: x, kind: command, command: [x], files: [{path: ../y, content: ''}]}",
            ["below HOME"],
        ),
        ("{name: x, kind: command, command: [x], exitCodes: {1: tired}}", ["exitCodes"]),
    ],
)
def test_problems_are_named_together(text, problems):
    with pytest.raises(BadDescription) as caught:
        parse_description(text, "x.yaml")

    for problem in problems:
        assert problem in str(caught.value)


def test_a_parser_is_total_and_an_unknown_one_is_said():
    assert parser("none")(b"\xff\x00") == Account()
    with pytest.raises(UnknownParser):
        parser("astrology")
