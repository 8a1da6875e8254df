"""What is wrong with a run, in words that name the field, what was found and what is accepted."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

MESSAGE_LIMIT = 4096
FOUND_LIMIT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake. `field` is a path as in the manifest: spec.matrix.agents[0].harness."""

    field: str
    found: str
    accepted: str

    def __str__(self) -> str:
        return f"{self.field}: found {self.found}, accepted: {self.accepted}"


def shown(value: Any) -> str:
    """A value as a person would write it, shortened."""
    if value is None:
        return "nothing"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= FOUND_LIMIT else f"{text[:FOUND_LIMIT]}..."


def one_of(found: str, known: Iterable[str]) -> str:
    """The accepted names, with the one that was probably meant."""
    names = sorted(known)
    accepted = ", ".join(names) if names else "none is defined"
    close = difflib.get_close_matches(found, names, n=1)
    return f'{accepted} (did you mean "{close[0]}"?)' if close else accepted


def summary(problems: Sequence[Problem]) -> str:
    """All problems in one message, shortened where there are very many."""
    lines: list[str] = []
    size = 0
    for index, problem in enumerate(problems):
        size += len(str(problem)) + 2
        if lines and size > MESSAGE_LIMIT:
            lines.append(f"and {len(problems) - index} more")
            break
        lines.append(str(problem))
    return "; ".join(lines)


def field_path(prefix: str, location: Iterable[int | str]) -> str:
    """`spec` + ("matrix", "agents", 0) -> spec.matrix.agents[0]."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return prefix + "".join(parts)


def schema_problems(prefix: str, error: ValidationError) -> tuple[Problem, ...]:
    """Problems of a pydantic error, one each."""
    return tuple(_schema_problem(prefix, entry) for entry in error.errors())


def _schema_problem(prefix: str, entry: Mapping[str, Any]) -> Problem:
    field = field_path(prefix, entry["loc"])
    if entry["type"] == "missing":
        return Problem(field=field, found="nothing", accepted="a value, since it is required")
    if entry["type"] == "extra_forbidden":
        return Problem(
            field=field,
            found="an unknown field",
            accepted="only documented fields (kubectl explain)",
        )
    context = entry.get("ctx") or {}
    accepted = str(context.get("expected") or entry["msg"].removeprefix("Input should be "))
    return Problem(field=field, found=shown(entry.get("input")), accepted=accepted)
