"""pytest: run by us, with a configuration of ours, from an interpreter outside the workspace."""

import posixpath
from typing import Literal

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.adjudication.parsers.pytest_text import parse_pytest
from stayer_evaluator.adjudication.suites.pytest_bootstrap import SOURCE
from stayer_evaluator.adjudication.suites.suite import (
    Canary,
    Command,
    Setting,
    SuiteFiles,
    Target,
    base_environment,
)

UNIT_RUNNER = "test_unit_runner.py"
#: An empty configuration that the sidecar puts into the suite's folder; hidden folders are not
#: collected. A `pytest.ini` of the suite's own is used instead: the suite is trusted.
CONFIG = ".stayer/pytest.ini"
_OPTIONS = (
    "--verbosity=1", "-rfE", "--tb=short", "--show-capture=no", "--color=no", "--no-header",
    "-p", "no:cacheprovider", "-o", "console_output_style=classic",
    # A module that cannot be imported takes its own cases with it, not everybody else's.
    "--continue-on-collection-errors",
)  # fmt: skip


class PytestSuite:
    """A task whose tests pytest collects."""

    name: Literal["pytest", "script"] = "pytest"

    def __init__(self, files: SuiteFiles) -> None:
        self.files = files

    def command(self, target: Target, setting: Setting) -> Command:
        """Isolated interpreter, trusted configuration, absolute paths into the suite."""
        config = "pytest.ini" if self.files.pytest_config else CONFIG
        argv = (
            setting.interpreter, "-I", "-B", "-c", SOURCE, setting.workspace,
            "-c", f"{setting.suite}/{config}", f"--rootdir={setting.suite}",
            f"--confcutdir={setting.suite}", f"--basetemp={setting.scratch}-pytest", *_OPTIONS,
            *(f"{setting.suite}/{path}".removesuffix("/") for path in self._paths(target)),
        )  # fmt: skip
        # For programs that the tests start; the isolated interpreter itself ignores it.
        env = {**base_environment(setting), "PYTHONPATH": setting.workspace}
        if target.unit is not None:
            env["STAYER_UNIT"] = target.unit
        return Command(argv=argv, env=env)

    def parse(self, log: bytes, setting: Setting, /) -> Parsed:
        """Ids relative to the suite's folder: pytest prints them relative to where it stands."""
        above = posixpath.relpath(setting.suite, setting.workspace) + "/"

        def identify(node: str) -> str:
            return node.removeprefix(above).removeprefix(f"{setting.suite}/")

        return parse_pytest(log, identify)

    def strict_exit(self, target: Target, /) -> bool:
        """A unit's own run; a whole run also fails for the units that are masked out."""
        return target.unit is not None or target.canary is not None

    def canary(self, word: str) -> Canary:
        """One file, two cases."""
        file = f"test_{word}.py"
        source = (
            f"def test_{word}_holds():\n    assert 6 * 7 == 42\n\n\n"
            f"def test_{word}_breaks():\n    assert 6 * 7 == 54\n"
        )
        return Canary(
            folder=word,
            files={file: source.encode()},
            must_pass=f"{word}/{file}::test_{word}_holds",
            must_fail=f"{word}/{file}::test_{word}_breaks",
        )

    def _paths(self, target: Target) -> tuple[str, ...]:
        if target.canary is not None:
            return (target.canary.folder,)
        unit = target.unit
        if unit is None or target.finder in ("whole_suite", "named_ids", "none"):
            return ("",)
        if target.finder == "unit_runner":
            return (f"{UNIT_RUNNER}::test_unit[{unit}]",)
        if unit in self.files.pytest_folders:
            return (self.files.folders[unit],)
        return self.files.selected[unit]
