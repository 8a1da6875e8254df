from __future__ import annotations

import json
from pathlib import Path

import pytest

from makers_tasks import ADD, write_task
from stayer_evaluator.tasks.problems import errors
from stayer_evaluator.tasks.validate import check_task


def found(root: Path) -> list[str]:
    return [str(problem) for problem in check_task(root)[1]]


def test_a_right_task_has_no_problems(tmp_path: Path) -> None:
    assert found(write_task(tmp_path)) == []


def dag(*units: str, edges: list[tuple[str, str]] = (), **extra: object) -> str:  # type: ignore[assignment]
    nodes = [{"id": unit, "has_tests": True, **extra} for unit in units]
    return json.dumps({"nodes": nodes, "edges": [{"from": a, "to": b} for a, b in edges]})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"unit_dag.json": dag("add", "parse", "run", edges=[("add", "run"), ("run", "add")])},
            "unit_dag.json: edges: found the cycle add -> run -> add; accepted: an acyclic graph",
            id="a cycle is named",
        ),
        pytest.param(
            {"unit_dag.json": dag("add", "parse", "run", edges=[("add", "walk")])},
            "unit_dag.json: edges[add -> walk]: found the unknown unit 'walk'; "
            "accepted: ids of nodes in the same file",
            id="an edge to an unknown unit",
        ),
        pytest.param(
            {"unit_dag.json": dag("add", "parse", "run", "run")},
            "unit_dag.json: nodes[id=run]: found the id 'run' 2 times; accepted: each unit id once",
            id="a duplicate id",
        ),
        pytest.param(
            {"unit_dag.json": dag("add", "parse", "run", "../x")},
            "unit_dag.json: nodes[3].id: found '../x'; "
            "accepted: letters, digits, '.', '_' and '-', at most 100",
            id="an id that is no file name",
        ),
        pytest.param(
            {"unit_dag.json": dag("add", "parse", "run", "walk"),
             "gold_patches/walk.diff": "", "tests/walk/test_walk.py": "x = 1\n"},
            "requirements/walk.yaml: found no file; accepted: a requirement file",
            id="a unit without requirement",
        ),
        pytest.param(
            {"requirements/run.yaml": "id: walk\ntitle: Run\nrequirement: x\n"},
            "requirements/run.yaml: id: found 'walk'; accepted: 'run'",
            id="a requirement of another id",
        ),
        pytest.param(
            {"requirements/run.yaml": "id: run\ntitle: Run\n"},
            "requirements/run.yaml: requirement: found None; accepted: a non-empty text",
            id="a requirement without text",
        ),
        pytest.param(
            {"requirements/walk.yaml": "id: walk\ntitle: W\nrequirement: x\n"},
            "requirements/walk.yaml: found a requirement of no unit; "
            "accepted: the id of a node in unit_dag.json",
            id="a requirement of no unit",
        ),
        pytest.param(
            {"base/solution.sh": "x"},
            "base/solution.sh: found a part of the solution or of the hidden suite; "
            "accepted: no such name anywhere below base/",
            id="the solution in the starting workspace",
        ),
        pytest.param(
            {"slug_diff_map.json": '{"run.yaml": "../../etc/passwd"}'},
            "slug_diff_map.json: run.yaml: found '../../etc/passwd'; "
            "accepted: the path of a patch inside the task directory",
            id="a slug map that leaves the directory",
        ),
        pytest.param(
            {"Dockerfile": ""},
            "Dockerfile: found an empty file; "
            "accepted: the instructions that build the task's image",
            id="an empty Dockerfile",
        ),
        pytest.param(
            {"run-tests.sh": "#!/bin/bash\n\n# todo\n"},
            "run-tests.sh: found nothing but comments; accepted: a script that runs the tests",
            id="a script that runs nothing",
        ),
        pytest.param(
            {"patch_order.json": '["add", "parze", "run"]'},
            "patch_order.json: found 'parze', which is no unit and no patch; "
            'accepted: ids of nodes in unit_dag.json (did you mean "parse"?)',
            id="an order of a unit that is not there",
        ),
    ],
)  # fmt: skip
def test_problem(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert expected in found(write_task(tmp_path, files=files))


def test_declared_tests_that_do_not_exist(tmp_path: Path) -> None:
    files = {
        "unit_dag.json": dag("add", "parse", "run", "walk"),
        "requirements/walk.yaml": "id: walk\ntitle: W\nrequirement: x",
        "gold_patches/walk.diff": "",
    }
    root = write_task(tmp_path, files=files)
    assert found(root) == [
        "unit_dag.json: nodes[id=walk].has_tests: found true, but no test of the suite belongs to "
        "the unit; accepted: tests/walk/, a unit runner that knows it, or tests that name it"
    ]


def test_a_gold_patch_that_does_not_apply_is_named_with_the_reason(tmp_path: Path) -> None:
    broken = ADD.replace("--- /dev/null", "--- a/calc/add.py").replace("-0,0", "-1")
    root = write_task(tmp_path, files={"gold_patches/add.diff": broken})
    problems = check_task(root)[1]
    assert [problem.file for problem in problems] == ["gold_patches/add.diff"]
    assert problems[0].found.startswith("a gold patch that does not apply (error: ")


def test_gold_patches_are_applied_one_after_the_other(tmp_path: Path) -> None:
    wrong_order = {"patch_order.json": '["run", "add", "parse"]'}
    second = (
        "--- a/calc/add.py\n+++ b/calc/add.py\n@@ -1,2 +1,2 @@\n"
        "-def add(a, b):\n+def add(a, c):\n     return a + b\n"
    )
    root = write_task(tmp_path, files={"gold_patches/parse.diff": second, **wrong_order})
    assert not errors(check_task(root)[1])


def test_a_layer_that_contradicts_the_edges_is_a_warning(tmp_path: Path) -> None:
    root = write_task(tmp_path)
    document = json.loads((root / "unit_dag.json").read_text())
    document["nodes"][2]["layer"] = 0
    (root / "unit_dag.json").write_text(json.dumps(document))
    problems = check_task(root)[1]
    assert [problem.severity for problem in problems] == ["warning"]
    assert problems[0].found == "0, not above its prerequisite add (0)"
    assert errors(problems) == ()


def test_a_link_in_the_directory_is_refused(tmp_path: Path) -> None:
    root = write_task(tmp_path)
    (root / "base/link").symlink_to("/etc/passwd")
    assert found(root) == ["base/link: found a symbolic link; accepted: files and folders"]


def test_all_problems_come_together(tmp_path: Path) -> None:
    root = write_task(tmp_path, settings={"instruction": ""}, files={"requirements/run.yaml": "[]"})
    (root / "Dockerfile").unlink()
    assert {problem.file for problem in check_task(root)[1]} == {
        "task.yaml", "Dockerfile", "requirements/run.yaml",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "files", "expected"),
    [
        pytest.param(
            {"parser_name": "pitest"}, {},
            "task.yaml: parser_name: found the unknown parser 'pitest'; accepted: django, "
            "native-text, pytest, pytest-text, terminal, terminal-text, workspace-results-json "
            '(did you mean "pytest"?)',
            id="an unknown parser",
        ),
        pytest.param(
            {"max_agent_timeout_secs": 60}, {},
            "task.yaml: max_agent_timeout_secs: found an unknown key, which is ignored; "
            'accepted: keys of the format (did you mean "max_agent_timeout_sec"?)',
            id="a misspelt key",
        ),
        pytest.param(
            {}, {"tests/walk/test_walk.py": "x = 1\n"},
            "tests/walk/: found tests of no unit, which only the whole suite may run; "
            "accepted: the id of a node in unit_dag.json",
            id="tests of no unit",
        ),
    ],
)  # fmt: skip
def test_what_the_public_format_lets_pass_is_a_warning(
    tmp_path: Path, settings: dict[str, object], files: dict[str, str], expected: str
) -> None:
    problems = check_task(write_task(tmp_path, settings=settings, files=files))[1]
    assert [str(problem) for problem in problems] == [expected]
    assert errors(problems) == ()


def test_a_folder_that_is_nearly_a_unit_is_named_with_the_unit(tmp_path: Path) -> None:
    root = write_task(tmp_path)
    (root / "tests/parse").rename(root / "tests/parze")
    assert (
        "tests/parze/: found tests of no unit, which only the whole suite may run; "
        'accepted: the id of a node in unit_dag.json (did you mean "parse"?)'
    ) in found(root)


def test_what_the_public_format_has_besides_units_is_no_problem(tmp_path: Path) -> None:
    files = {
        "tests/tests/test_shared.py": "x = 1\n",
        "tests/helpers/wait.py": "x = 1\n",
        "tests/add/selected_tests.json": "[]",
        "gold-patch.diff": "",
        "patch_order.json": '["gold_patches/add.diff", "pr_parse.diff", "run", "gold-patch.diff"]',
    }
    settings = {"x_note": "y", "contributor_github": "z", "parser_name": "pytest-custom"}
    root = write_task(tmp_path, files=files, settings=settings)
    assert found(root) == []


def test_a_graph_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    files = {"unit_dag.json": "{", "patch_order.json": '["add"]'}
    root = write_task(tmp_path, files=files)
    assert {problem.file for problem in check_task(root)[1]} == {"unit_dag.json"}
    assert len(found(root)) == 1


def test_a_folder_of_tasks_and_a_file_are_called_that(tmp_path: Path) -> None:
    root = write_task(tmp_path)
    assert found(tmp_path) == [
        f'.: found a folder of tasks; accepted: a task directory (did you mean "{tmp_path}/*/"?)'
    ]
    assert found(root / "Dockerfile") == [".: found a file; accepted: a task directory"]
