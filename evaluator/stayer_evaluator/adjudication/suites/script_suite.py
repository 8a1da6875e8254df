"""Any other suite: its own `run-tests.sh`, told which unit by UNIT_TEST_DIR and STAYER_UNIT."""

from typing import Literal

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.adjudication.parsers.terminal import parse_terminal
from stayer_evaluator.adjudication.suites.script_canaries import native_canary, script_canary
from stayer_evaluator.adjudication.suites.suite import (
    Canary,
    Command,
    Setting,
    SuiteFiles,
    Target,
    base_environment,
)

SCRIPT = "run-tests.sh"
#: `env` finds bash in the image's PATH as the inventory saw it; images differ in where it lies.
_BASH = ("/usr/bin/env", "bash")


class ScriptSuite:
    """A task run by its script. Its canaries go through the script too where they can (`native`),
    else they are scripts of their own, run by the same shell (design.md §4).
    """

    name: Literal["pytest", "script"] = "script"

    def __init__(self, files: SuiteFiles, *, native: bool = True) -> None:
        self.files = files
        self.native = native

    def command(self, target: Target, setting: Setting) -> Command:
        """The script; for a canary script that script itself."""
        env = base_environment(setting)
        canary = target.canary
        if canary is not None and not canary.native:
            script = f"{setting.suite}/{canary.folder}/{next(iter(canary.files))}"
            return Command(argv=(*_BASH, script), env=env)
        unit = canary.folder if canary is not None else target.unit
        if unit is not None:
            env["STAYER_UNIT"] = unit
        return Command(argv=(*_BASH, f"{setting.suite}/{SCRIPT}"), env=env)

    def parse(self, log: bytes, _setting: Setting, /) -> Parsed:
        """Whatever runner the script starts."""
        return parse_terminal(log)

    def strict_exit(self, _target: Target, /) -> bool:
        """Never: public scripts need not exit with the outcome of their tests."""
        return False

    def canary(self, word: str) -> Canary:
        """In the suite's own language where it was seen to work, else as a script."""
        native = native_canary(word, self.files) if self.native else None
        return native or script_canary(word)
