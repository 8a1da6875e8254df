"""What can be wrong with a task directory, said once for a person to mend."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault: where it is, what was found and what would be accepted."""

    file: str
    field: str = ""
    found: str
    accepted: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"{self.file}: {self.field}" if self.field else self.file
        return f"{place}: found {self.found}; accepted: {self.accepted}"


class InvalidTask(Exception):  # noqa: N818 (reads as what happened)
    """A task directory that cannot be used; carries all its problems."""

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(f"task {name}: {problem}" for problem in problems))
        self.name = name
        self.problems = problems


def warning(*, file: str, field: str = "", found: str, accepted: str) -> Problem:
    """A problem that does not stop the task from being used."""
    return Problem(file=file, field=field, found=found, accepted=accepted, severity="warning")


def errors(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Those that stop the task."""
    return tuple(problem for problem in problems if problem.severity == "error")


def did_you_mean(found: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """` (did you mean "x"?)`, to stand behind what is accepted; nothing without a close name."""
    close = difflib.get_close_matches(found, sorted(known), n=1, cutoff=cutoff)
    return f' (did you mean "{close[0]}"?)' if close else ""


def one_of(found: str, known: Iterable[str]) -> str:
    """The accepted names, with the one that was probably meant."""
    names = sorted(known)
    return ", ".join(names) + did_you_mean(found, names)
