"""What a snapshot leaves out (evaluation.md §3). Pure."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

CACHES = frozenset(
    {
        ".git",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".pytype",
    }
)
CACHE_SUFFIXES = (".pyc", ".pyo")
DEPENDENCIES = frozenset({"node_modules", ".venv"})
ALWAYS_KEPT = ("requirement_patches", "agent_plans", "agent_tests")


class Filter(Protocol):
    """Decides what a walk does not see."""

    def leaves_out(self, directory: str, name: str) -> bool:
        """Whether `name` in `directory` ("" or with trailing slash) is left out."""


@dataclass(frozen=True, slots=True)
class Excludes:
    """Names left out at any depth, and glob patterns.

    A pattern without `/` is matched against every name, one with `/` against the whole path from
    the workspace; `*` and `?` stay within a name, `**` crosses them. Patterns and dependency
    folders do not apply inside ALWAYS_KEPT; interpreter caches are left out there too, as running
    a test leaves some behind and a planted one must not reach the adjudicator (security.md A13).
    """

    names: frozenset[str] = CACHES
    suffixes: tuple[str, ...] = CACHE_SUFFIXES
    dependencies: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def leaves_out(self, directory: str, name: str) -> bool:
        """As Filter says."""
        if name in self.names or name.endswith(self.suffixes):
            return True
        if not self.dependencies and not self.patterns:
            return False
        path = directory + name
        if path.partition("/")[0] in ALWAYS_KEPT:
            return False
        return name in self.dependencies or any(
            _compiled(pattern).fullmatch(path if "/" in pattern else name) is not None
            for pattern in self.patterns
        )


@dataclass(frozen=True, slots=True)
class OnlyGit:
    """Of a workspace only the repository's `.git`, without the locks of a git at work."""

    def leaves_out(self, directory: str, name: str) -> bool:
        """As Filter says."""
        return name != ".git" if not directory else name.endswith(".lock")


def excludes(*, public: bool = False, patterns: tuple[str, ...] = ()) -> Excludes:
    """The excludes of a trial: the default ones, those of the public harness, extra patterns."""
    return Excludes(dependencies=DEPENDENCIES if public else frozenset(), patterns=patterns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.strip("/"))
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts), re.DOTALL)
