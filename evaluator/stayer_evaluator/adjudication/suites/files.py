"""Reading an unpacked suite into a SuiteFiles view, and choosing the adapter for it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from stayer_evaluator.adjudication.suites.pytest_suite import CONFIG, UNIT_RUNNER, PytestSuite
from stayer_evaluator.adjudication.suites.script_suite import SCRIPT, ScriptSuite
from stayer_evaluator.adjudication.suites.suite import Suite, SuiteFiles

_SAMPLE_BYTES = 4096
_SELECTED = "selected_tests.json"


def read_suite(root: Path, units: Iterable[str]) -> SuiteFiles:
    """What the suite holds for the units. Only our own, trusted archive is read."""
    folders = {
        unit: name
        for unit in units
        for name in (f"pr_{unit}", unit)  # the later, plain name wins
        if (root / name).is_dir() and any(p.is_file() for p in (root / name).rglob("*"))
    }
    selected = {unit: _selected(root / name / _SELECTED) for unit, name in folders.items()}
    sample = _sample(root, folders.values())
    return SuiteFiles(
        folders=folders,
        pytest_folders=frozenset(u for u, name in folders.items() if _collects(root / name)),
        selected={unit: tests for unit, tests in selected.items() if tests},
        unit_runner=(root / UNIT_RUNNER).is_file(),
        pytest_config=(root / "pytest.ini").is_file(),
        script=(root / SCRIPT).is_file(),
        sample=sample.name if sample else "",
        sample_text=_text(sample) if sample else "",
    )


def prepare_suite(root: Path) -> None:
    """Add what our own commands need: pytest's empty configuration."""
    config = root / CONFIG
    config.parent.mkdir(exist_ok=True)
    config.write_text("[pytest]\n", encoding="ascii")


def suite_by_name(
    name: str, files: SuiteFiles, canaries: Literal["native", "script"] = "native"
) -> Suite:
    """The adapter that an inventory names. Raises ValueError for an unknown one."""
    if name == "pytest":
        return PytestSuite(files)
    if name == "script":
        return ScriptSuite(files, native=canaries == "native")
    raise ValueError(f"suite adapter {name!r} (accepted: pytest, script)")


def looks_like_pytest(files: SuiteFiles) -> bool:
    """Everything that belongs to units can be given to pytest directly."""
    if files.folders:
        return all(
            unit in files.pytest_folders or unit in files.selected or files.unit_runner
            for unit in files.folders
        )
    return files.unit_runner


def _collects(folder: Path) -> bool:
    return any(folder.rglob("test_*.py")) or any(folder.rglob("*_test.py"))


def _selected(path: Path) -> tuple[str, ...]:
    """A list of tests as published: comment lines stripped, paths relative to the suite."""
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    try:
        listed = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("#")))
    except json.JSONDecodeError:
        return ()
    return tuple(str(test) for test in listed) if isinstance(listed, list) else ()


def _sample(root: Path, folders: Iterable[str]) -> Path | None:
    files = (p for name in sorted(folders) for p in sorted((root / name).rglob("*")))
    tests = (p for p in files if p.is_file() and (".test." in p.name or ".spec." in p.name))
    return next(tests, None)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_SAMPLE_BYTES).decode("utf-8", "replace")
