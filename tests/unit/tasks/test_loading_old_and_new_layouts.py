from __future__ import annotations

import json
from pathlib import Path

import pytest

from makers_tasks import ADD, IMAGE, PARSE, RUN, write_task
from stayer_evaluator.tasks.load import read_task
from stayer_evaluator.tasks.model import SUITE_UNIT
from stayer_evaluator.tasks.problems import errors
from stayer_evaluator.tasks.record import task_record
from stayer_evaluator.tasks.validate import check_task


def test_the_record_holds_graph_sizes_and_settings(tmp_path: Path) -> None:
    record = task_record(read_task(write_task(tmp_path))[0], IMAGE)
    units = {unit.id: unit for unit in record.units}
    assert [(u.id, u.layer, u.gold_lines, u.has_tests) for u in record.units] == [
        ("add", 0, 2, True), ("parse", 0, 3, True), ("run", 1, 5, True),
    ]  # fmt: skip
    assert units["run"].prerequisites == ("add", "parse")
    assert (record.name, record.depth, record.language) == ("task_calc", 2, "python")
    assert record.reference_order == ("add", "parse", "run")


def test_legacy_names_lead_to_the_same_unit(tmp_path: Path) -> None:
    files = {
        "unit_dag.json": json.dumps({"nodes": [{"id": 1, "has_tests": True}, {"id": "2"}],
                                     "edges": [{"from": 1, "to": 2}]}),
        "gold_patches/pr_1.diff": ADD, "gold_patches/pr_2.diff": PARSE,
        "requirements/pr_1.yaml": "id: pr_1\ntitle: One\nrequirement: x\n",
        "requirements/2.yaml": "id: '2'\ntitle: Two\nrequirement: x\n",
        "tests/pr_1/test_one.py": "def test(): pass\n",
    }  # fmt: skip
    task, problems = check_task(write_task(tmp_path, gold={}, tests={}, files=files))
    assert [str(problem) for problem in problems] == []
    first, second = task.units
    assert (first.gold and first.gold.name, second.gold and second.gold.name) == (
        "pr_1.diff", "pr_2.diff",
    )  # fmt: skip
    assert first.tests is not None
    assert first.tests.name == "pr_1"
    assert (first.has_tests, second.has_tests) == (True, False)
    assert task_record(task, IMAGE).units[1].prerequisites == ("1",)


def test_one_patch_for_all_units_is_accepted_with_a_warning(tmp_path: Path) -> None:
    root = write_task(tmp_path, files={"gold-patch.diff": ADD + PARSE + RUN})
    for unit in ("add", "parse", "run"):
        (root / f"gold_patches/{unit}.diff").unlink()
    task, problems = check_task(root)
    assert not errors(problems)
    assert [problem.file for problem in problems] == ["gold-patch.diff"]
    assert all(unit.gold_lines == 0 for unit in task_record(task, IMAGE).units)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"patch_order.json": '["parse", "gold_patches/add.diff", "run"]'},
                     ("parse", "add", "run"), id="declared patch order"),
        pytest.param({"module_dag.yaml": "nodes: [{id: parse, impl_order: 1}, "
                                         "{id: add, impl_order: 2}]"},
                     ("parse", "add", "run"), id="implementation order"),
        pytest.param({"solution.sh": "for u in parse add run; do apply $u.diff; done"},
                     ("parse", "add", "run"), id="order of solution.sh"),
        pytest.param({"solution.sh": "a parse add", "patch_order.json": '["add", "parse"]'},
                     ("add", "parse", "run"), id="the patch order goes before solution.sh"),
        pytest.param({}, ("add", "parse", "run"), id="topological with declaration ties"),
    ],
)  # fmt: skip
def test_reference_order_by_source(
    tmp_path: Path, files: dict[str, str], expected: tuple[str, ...]
) -> None:
    record = task_record(read_task(write_task(tmp_path, files=files))[0], IMAGE)
    assert record.reference_order == expected


def test_a_task_without_unit_tests_gets_the_suite_as_its_first_unit(tmp_path: Path) -> None:
    root = write_task(tmp_path, tests={}, files={"tests/test_all.py": "def test(): pass\n"})
    record = task_record(read_task(root)[0], IMAGE)
    assert [unit.id for unit in record.units if unit.has_tests] == [SUITE_UNIT]
    assert record.units[0].id == SUITE_UNIT
    assert record.units[0].gold_lines == 2
    assert {u.id: u.prerequisites for u in record.units}["add"] == (SUITE_UNIT,)
    assert record.reference_order[0] == SUITE_UNIT


def test_a_directory_whose_files_cannot_be_read_says_all_of_it_at_once(tmp_path: Path) -> None:
    root = write_task(
        tmp_path,
        settings={"instruction": " ", "difficulty": "cruel", "max_test_timeout_sec": -1},
        files={"unit_dag.json": "{"},
    )
    places = [(problem.file, problem.field) for problem in read_task(root)[1]]
    assert ("task.yaml", "instruction") in places
    assert ("task.yaml", "difficulty") in places
    assert ("task.yaml", "max_test_timeout_sec") in places
    assert ("unit_dag.json", "") in places


def test_no_directory_is_one_problem(tmp_path: Path) -> None:
    _, problems = check_task(tmp_path / "nowhere")
    assert [str(problem) for problem in problems] == [
        ".: found no directory; accepted: a task directory"
    ]
