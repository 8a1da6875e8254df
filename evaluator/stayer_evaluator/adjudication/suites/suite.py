"""What every suite adapter offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.records import places

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Finder = Literal["folder", "unit_runner", "named_ids", "whole_suite", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFiles:
    """What lies in the suite's folder, read once on our side after it was unpacked."""

    folders: Mapping[str, str] = field(default_factory=dict)
    """Unit → its own folder, relative."""
    pytest_folders: frozenset[str] = frozenset()
    """Units whose folder holds files that pytest collects."""
    selected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Unit → the tests its `selected_tests.json` lists, relative."""
    unit_runner: bool = False
    pytest_config: bool = False
    script: bool = False
    sample: str = ""
    """Name and start of a test file in a unit's folder, for canaries in its language."""
    sample_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where and with what one run happens. Paths are those inside the task container; names that
    begin with `scratch` are the run's own and did not exist before it.
    """

    interpreter: str = ""
    path: str = DEFAULT_PATH
    scratch: str = "/tmp/stayer"  # noqa: S108 (inside the task container, new for every run)
    workspace: str = places.WORKSPACE
    suite: str = places.SUITE
    home: str = places.HOME


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What to run: a unit by a finder, a folder of canaries, or (neither) the whole suite."""

    unit: str | None = None
    finder: Finder = "whole_suite"
    canary: "Canary | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """argv and the whole environment of a run."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A must-pass and a must-fail case: files in a folder of the suite, and the cases' ids."""

    folder: str
    files: Mapping[str, bytes]
    must_pass: str
    must_fail: str
    native: bool = True


class Suite(Protocol):
    """A suite adapter."""

    name: Literal["pytest", "script"]
    files: SuiteFiles

    def command(self, target: Target, setting: Setting) -> Command:
        """How the target is run."""

    def parse(self, log: bytes, setting: Setting, /) -> Parsed:
        """What a run's log says."""

    def strict_exit(self, target: Target, /) -> bool:
        """The exit code of such a run must be 0 for a pass."""

    def canary(self, word: str) -> Canary:
        """Canaries under names made from `word`, which nobody can know before the run."""


def base_environment(setting: Setting) -> dict[str, str]:
    """All that a run sees of the world, whatever the image or the agent set."""
    return {
        "HOME": setting.home,
        "PATH": setting.path,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The public contract's own names.
        "REPO_DIR": setting.workspace,
        "REPO_DIR_OVERRIDE": setting.workspace,
        "TEST_DIR": setting.suite,
        "UNIT_TEST_DIR": setting.suite,
    }
