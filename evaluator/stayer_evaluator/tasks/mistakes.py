"""Likely mistakes of whoever wrote a task directory: empty files, names that nothing answers to.

The public format ignores unknown keys, takes any `parser_name` and lets helpers lie beside the
units' tests: there this warns at most, so that a public task loads unchanged.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stayer_evaluator.tasks.digest import IGNORED_NAMES
from stayer_evaluator.tasks.graph import DAG_FILE
from stayer_evaluator.tasks.model import Task
from stayer_evaluator.tasks.problems import Problem, did_you_mean, one_of, warning
from stayer_evaluator.tasks.sources import TASK_FILE

#: Keys of the public format, those that only its publishing reads included, and our own.
_KEYS = frozenset(
    {
        "instruction", "author_name", "author_email", "difficulty", "category", "tags", "language",
        "parser_name", "result_sources", "docker", "max_agent_timeout_sec", "max_test_timeout_sec",
        "run_tests_in_same_shell", "estimated_duration_sec", "expert_time_estimate_min",
        "junior_time_estimate_min", "source_url", "source_repository_url", "source_base_revision",
        "source_date", "proposal_url", "license_status", "contributor_github",
        "contributor_organization", "contributor_name", "contributor_email", "x_base",
    }
)  # fmt: skip
_PARSERS = (
    "pytest", "django", "terminal", "pytest-text", "terminal-text", "native-text",
    "workspace-results-json",
)  # fmt: skip
_WANTED = {
    "Dockerfile": "the instructions that build the task's image",
    "run-tests.sh": "a script that runs the tests",
}
#: Shared by the units' tests in the public format.
_SHARED = "tests"
_TEST_FILE = re.compile(r"(^|[._-])tests?[._-]", re.IGNORECASE)


def folder_of_tasks(root: Path) -> Problem | None:
    """A folder that holds task directories but is none itself."""
    if not root.is_dir() or (root / TASK_FILE).exists() or (root / DAG_FILE).exists():
        return None
    if not any(root.glob(f"*/{TASK_FILE}")):
        return None
    return Problem(
        file=".",
        found="a folder of tasks",
        accepted=f'a task directory (did you mean "{root}/*/"?)',
    )


def empty_problems(root: Path) -> Iterator[Problem]:
    """Files that must do something, but hold nothing or comments only."""
    for name, accepted in _WANTED.items():
        path = root / name
        if not path.is_file():
            continue
        lines = [line.strip() for line in path.read_bytes().splitlines()]
        if not any(line and not line.startswith(b"#") for line in lines):
            found = "nothing but comments" if any(lines) else "an empty file"
            yield Problem(file=name, found=found, accepted=accepted)


def settings_warnings(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys that are nearly known ones, and a parser that nobody knows."""
    for key in raw:
        name = str(key)
        meant = "" if name in _KEYS else did_you_mean(name, _KEYS, cutoff=0.8)
        if meant:
            yield warning(
                file=TASK_FILE,
                field=name,
                found="an unknown key, which is ignored",
                accepted=f"keys of the format{meant}",
            )
    parser = raw.get("parser_name")
    if isinstance(parser, str) and parser not in _PARSERS and not parser.startswith("pytest"):
        yield warning(
            file=TASK_FILE,
            field="parser_name",
            found=f"the unknown parser {parser!r}",
            accepted=one_of(parser, _PARSERS),
        )


def test_folder_warnings(task: Task) -> Iterator[Problem]:
    """Folders below tests/ that look like a unit's, but are no unit's."""
    units = {unit.id for unit in task.units}
    without = {unit.id for unit in task.units if unit.tests is None}
    folder = task.root / "tests"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = path.name.removeprefix("pr_")
        if not path.is_dir() or path.name in IGNORED_NAMES or path.name == _SHARED:
            continue
        if name in units or path.name in units:
            continue
        meant = did_you_mean(name, without)
        if meant or any(_TEST_FILE.search(file.name) for file in path.rglob("*")):
            yield warning(
                file=f"tests/{path.name}/",
                found="tests of no unit, which only the whole suite may run",
                accepted=f"the id of a node in {DAG_FILE}{meant}",
            )
