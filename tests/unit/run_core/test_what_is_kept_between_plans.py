"""A spec is parsed once, and what follows from it alone is found once."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import pytest

from makers_run import make_manifest, make_spec, make_world
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.assess import assess
from stayer_operator.core.run.problems import Problem
from stayer_operator.core.run.same import Same
from stayer_operator.core.run.spec import parse_spec


def test_documents_with_equal_specs_have_one_spec():
    first = make_manifest(make_spec(attempts=17))
    second = {**copy.deepcopy(first), "status": {"phase": "Running"}}
    assert parse_spec(first) is parse_spec(second)


@pytest.mark.parametrize("value", [True, 1.5, "18", None, 19, float("nan"), 2**80])
def test_specs_that_differ_in_a_value_are_parsed_each_for_itself(value: Any):
    parse_spec(make_manifest(make_spec(attempts=1)))
    parsed = parse_spec(make_manifest(make_spec(attempts=value)))
    spec = {key: one for key, one in make_spec(attempts=value).items() if one is not None}
    try:
        assert parsed == RunSpec.model_validate(spec)
    except ValueError:
        assert isinstance(parsed, tuple)
        assert [problem.field for problem in parsed] == ["spec.attempts"]


def test_what_is_no_json_is_judged_all_the_same():
    manifest = make_manifest(make_spec(benchmark=datetime.date(2026, 11, 30)))
    problems = parse_spec(manifest)
    assert isinstance(problems, tuple)
    assert isinstance(problems[0], Problem)


def test_an_edited_spec_and_other_scripts_are_seen_at_once():
    agents = [
        {"name": "w", "harness": "scripted", "scriptConfigMap": {"name": "scripts", "key": "w"}}
    ]
    world = make_world(matrix={"agents": agents})
    world.scripts = {("scripts", "w"): None}
    assert not assess(world.view()).is_sound
    world.scripts = {("scripts", "w"): "steps: [{wait: {seconds: 1}}]"}
    world.start_all()
    before = assess(world.view())
    assert before.is_sound
    assert before.cells is assess(world.view()).cells
    world.scripts = {("scripts", "w"): "steps: [{wait: {seconds: 2}}]"}
    assert assess(world.view()).immutable
    world.scripts = {("scripts", "w"): "steps: [{wait: {seconds: 1}}]"}
    world.edit(attempts=2)
    assert [cell.attempts for cell in assess(world.view()).cells] == [2, 2]


def test_equal_objects_are_not_the_same():
    one, other = {"a": 1}, {"a": 1}
    assert Same(one) == Same(one)
    assert Same(one) != Same(other)
    assert len({Same(one), Same(other), Same(one)}) == 2
