"""Globs over task names."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from stayer_operator.api.base import GLOB_PATTERN

_SYNTAX = re.compile(GLOB_PATTERN)


def is_glob(text: str) -> bool:
    """Whether `text` is a glob that the schema accepts."""
    return _SYNTAX.match(text) is not None


def matches(name: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches the name, in its case."""
    return any(fnmatchcase(name, glob) for glob in globs)


def is_selected(name: str, include: Iterable[str], exclude: Iterable[str]) -> bool:
    """Whether a task belongs to a run: included and not excluded."""
    return matches(name, include) and not matches(name, exclude)
