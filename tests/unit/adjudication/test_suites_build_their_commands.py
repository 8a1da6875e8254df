from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stayer_evaluator.adjudication.image import Image
from stayer_evaluator.adjudication.inventory import choose_suite
from stayer_evaluator.adjudication.suites.files import (
    looks_like_pytest,
    prepare_suite,
    read_suite,
    suite_by_name,
)
from stayer_evaluator.adjudication.suites.naming import named_cases
from stayer_evaluator.adjudication.suites.suite import Setting, Target

SETTING = Setting(
    interpreter="/opt/venv/bin/python3", path="/opt/venv/bin:/usr/bin", scratch="/tmp/s1"
)


def lay(root: Path, *names: str, **texts: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(path.stem, ""))
    return root


def test_what_a_suite_holds(tmp_path: Path) -> None:
    root = lay(tmp_path, "a/test_a.py", "pr_2/deep/x_test.py", "c/c.test.mjs",
               "d/selected_tests.json", "test_unit_runner.py", "run-tests.sh", "pytest.ini",
               selected_tests='# comment\n["tests/test_x.py::test_y"]')  # fmt: skip
    files = read_suite(root, ["a", "2", "c", "d", "nowhere"])
    assert dict(files.folders) == {"a": "a", "2": "pr_2", "c": "c", "d": "d"}
    assert files.pytest_folders == {"a", "2"}
    assert dict(files.selected) == {"d": ("tests/test_x.py::test_y",)}
    assert (files.unit_runner, files.script, files.pytest_config) == (True, True, True)
    assert files.sample == "c.test.mjs"


@pytest.mark.parametrize(
    ("target", "paths"),
    [
        pytest.param(Target(unit="a", finder="folder"), ["/tests/a"], id="a folder"),
        pytest.param(Target(unit="d", finder="folder"), ["/tests/tests/test_x.py::test_y"],
                     id="selected tests"),
        pytest.param(Target(unit="a", finder="unit_runner"),
                     ["/tests/test_unit_runner.py::test_unit[a]"], id="the unit runner"),
        pytest.param(Target(), ["/tests"], id="everything"),
    ],
)  # fmt: skip
def test_pytest_targets(tmp_path: Path, target: Target, paths: list[str]) -> None:
    lay(tmp_path, "a/test_a.py", "d/selected_tests.json", "test_unit_runner.py",
        selected_tests='["tests/test_x.py::test_y"]')  # fmt: skip
    suite = suite_by_name("pytest", read_suite(tmp_path, ["a", "d"]))
    argv = suite.command(target, SETTING).argv
    assert list(argv[-len(paths) :]) == paths
    assert argv[:4] == ("/opt/venv/bin/python3", "-I", "-B", "-c")
    assert "/tests/.stayer/pytest.ini" in argv
    assert "--rootdir=/tests" in argv


def test_the_suites_own_configuration_is_used(tmp_path: Path) -> None:
    suite = suite_by_name("pytest", read_suite(lay(tmp_path, "pytest.ini"), []))
    assert "/tests/pytest.ini" in suite.command(Target(), SETTING).argv


def test_an_empty_configuration_is_laid_down(tmp_path: Path) -> None:
    prepare_suite(tmp_path)
    assert (tmp_path / ".stayer/pytest.ini").read_text() == "[pytest]\n"


def test_ids_are_relative_to_the_suite() -> None:
    suite = suite_by_name("pytest", read_suite(Path("/nonexistent"), []))
    log = b"../tests/a/tests/test_a.py::t PASSED\n=== 1 passed in 0.1s ===\n"
    assert list(suite.parse(log, SETTING).cases) == ["a/tests/test_a.py::t"]


def test_a_script_is_told_its_unit(tmp_path: Path) -> None:
    suite = suite_by_name("script", read_suite(tmp_path, []))
    command = suite.command(Target(unit="a", finder="folder"), SETTING)
    assert command.argv == ("/usr/bin/env", "bash", "/tests/run-tests.sh")
    assert command.env["STAYER_UNIT"] == "a"
    assert command.env["UNIT_TEST_DIR"] == "/tests"
    assert "STAYER_UNIT" not in suite.command(Target(), SETTING).env
    assert "PYTHONPATH" not in command.env


def test_canaries_of_pytest_are_a_file_of_two_cases() -> None:
    canary = suite_by_name("pytest", read_suite(Path("/nonexistent"), [])).canary("c123")
    assert list(canary.files) == ["test_c123.py"]
    assert canary.must_pass == "c123/test_c123.py::test_c123_holds"
    assert canary.must_fail == "c123/test_c123.py::test_c123_breaks"


@pytest.mark.parametrize(
    ("name", "text", "file", "loads"),
    [
        ("a.test.mjs", "import test from 'node:test'", "c1.test.mjs", b"import test"),
        ("a.test.js", "const test = require('node:test')", "c1.test.js", b"require("),
        ("a_test.cjs", "", "c1.sh", b"echo"),
        ("a.test.js", "jest only", "c1.sh", b"echo"),
        ("test_a.go", "", "c1.sh", b"echo"),
    ],
)
def test_canaries_of_a_script_are_in_its_language(
    tmp_path: Path, name: str, text: str, file: str, loads: bytes
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_text(text)
    suite = suite_by_name("script", read_suite(tmp_path, ["a"]))
    canary = suite.canary("c1")
    assert list(canary.files) == [file]
    assert loads in canary.files[file]
    plain = suite_by_name("script", read_suite(tmp_path, ["a"]), "script").canary("c1")
    assert not plain.native


def test_a_canary_script_is_run_itself(tmp_path: Path) -> None:
    suite = suite_by_name("script", read_suite(tmp_path, []), "script")
    command = suite.command(Target(canary=suite.canary("c1")), SETTING)
    assert command.argv == ("/usr/bin/env", "bash", "/tests/c1/c1.sh")


WITH = Image(path="/bin", interpreter="/usr/bin/python3")
WITHOUT = Image(path="/bin", interpreter="")


@pytest.mark.parametrize(
    ("names", "image", "parser", "expected"),
    [
        pytest.param(["a/test_a.py", "run-tests.sh"], WITH, "", "pytest", id="pytest folders"),
        pytest.param(["a/test_a.py", "run-tests.sh"], WITHOUT, "", "script", id="no pytest there"),
        pytest.param(["a/a.test.mjs", "run-tests.sh"], WITH, "pytest", "script", id="other files"),
        pytest.param(["test_all.py", "run-tests.sh"], WITH, "pytest", "pytest", id="declared"),
        pytest.param(["test_all.py", "run-tests.sh"], WITH, "native", "script", id="not declared"),
        pytest.param(["test_all.py"], WITHOUT, "pytest", None, id="nothing that runs"),
    ],
)
def test_choice_of_the_adapter(
    tmp_path: Path, names: list[str], image: Image, parser: str, expected: str | None
) -> None:
    files = read_suite(lay(tmp_path, *names), ["a"])
    assert choose_suite(files, image, parser) == expected


def test_an_unknown_adapter_is_named() -> None:
    files = read_suite(Path("/nonexistent"), [])
    with pytest.raises(ValueError, match=r"'make' \(accepted: pytest, script\)"):
        suite_by_name("make", files)
    assert not looks_like_pytest(files)


@pytest.mark.parametrize(
    ("case", "owner"),
    [
        ("test_parser.py::test_x", "parser"),
        ("test_parser_errors.py::test_x", "parser-errors"),
        ("suite parser-errors > deep", "parser-errors"),
        ("TestParser::x", None),
        ("sparser.py::t", None),
        ("pr_3/test_x.py::t", "3"),
        ("test_13.py::test_3", None),
    ],
)
def test_a_case_belongs_to_the_unit_that_it_names(case: str, owner: str | None) -> None:
    found = named_cases([case], ["parser", "parser-errors", "3"])
    assert [unit for unit, cases in found.items() if cases] == ([owner] if owner else [])


def test_a_module_that_cannot_be_imported_hides_no_other_case(tmp_path: Path) -> None:
    """On a half-built workspace a whole run must still report what can be run."""
    root, workspace = tmp_path / "suite", tmp_path / "workspace"
    workspace.mkdir()
    lay(root, "a/test_a.py", "b/test_b.py",
        test_a="def test_one():\n    pass\n", test_b="import not_written_yet\n")  # fmt: skip
    setting = replace(
        SETTING, interpreter=sys.executable, suite=str(root), workspace=str(workspace),
        scratch=str(tmp_path / "s"), path="/usr/bin:/bin",
    )  # fmt: skip
    files = read_suite(root, ["a", "b"])
    suite = suite_by_name("pytest", files)
    prepare_suite(root)
    command = suite.command(Target(), setting)
    done = subprocess.run(
        command.argv,
        env=dict(command.env),
        cwd=workspace,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert "a/test_a.py::test_one" in suite.parse(done.stdout, setting).cases
