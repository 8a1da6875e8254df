"""The script of the `scripted` harness: YAML steps, by round."""

from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from stayer_evaluator.records.base import Record

STEP_KINDS = ("applyDiff", "writeFile", "run", "wait", "exit", "hang")


class ScriptError(Exception):
    """A script that cannot be run. `problems` lists everything that is wrong with it."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class _Step(Record):
    """Fields are spelled as in the YAML."""


class ApplyDiff(_Step):
    """Apply the gold patch of a unit, or a given unified or git binary diff."""

    unit: str | None = Field(default=None, min_length=1)
    diff: str | None = Field(default=None, min_length=1)
    patchOf: str | None = Field(default=None, min_length=1)  # noqa: N815 (as in the YAML)
    reverse: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> "ApplyDiff":
        if (self.unit is None) == (self.diff is None):
            found = "neither" if self.unit is None else "both"
            raise ValueError(f"found {found} of unit and diff, accepted: exactly one")
        if self.unit is not None and self.patchOf is not None:
            raise ValueError("found unit with patchOf, accepted: patchOf with diff only")
        return self


class WriteFile(_Step):
    """Write a file of the workspace, folders included."""

    path: str = Field(min_length=1)
    content: str = ""
    mode: str = Field(default="0644", pattern=r"^0?[0-7]{3}$")

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"found {path}, accepted: a path inside the workspace, relative")
        return path


class RunCommand(_Step):
    """Run a command in the workspace as the agent's user; its exit code is only logged."""

    command: tuple[str, ...] = Field(min_length=1)
    timeoutSeconds: float = Field(default=600, gt=0, le=86400)  # noqa: N815 (as in the YAML)


class Wait(_Step):
    """Do nothing for a while."""

    seconds: float = Field(ge=0, le=86400)


class Exit(_Step):
    """End the round: 0 as it should, everything else as unknown_agent_error."""

    code: int = Field(ge=0, le=255)


class Hang(_Step):
    """Do nothing until the time limit."""


StepAction = ApplyDiff | WriteFile | RunCommand | Wait | Exit | Hang


class Step(Record):
    """One step: exactly one of its fields is set."""

    applyDiff: ApplyDiff | None = None  # noqa: N815 (as in the YAML)
    writeFile: WriteFile | None = None  # noqa: N815 (as in the YAML)
    run: RunCommand | None = None
    wait: Wait | None = None
    exit: Exit | None = None
    hang: Hang | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Step":
        found = [kind for kind in STEP_KINDS if getattr(self, kind) is not None]
        if len(found) != 1:
            raise ValueError(
                f"found {' and '.join(found) or 'an empty step'}, "
                f"accepted: exactly one of {', '.join(STEP_KINDS)}"
            )
        return self

    @property
    def action(self) -> StepAction:
        """What the step does."""
        actions = (getattr(self, kind) for kind in STEP_KINDS)
        found: StepAction = next(action for action in actions if action is not None)
        return found


RoundNumber = Annotated[int, Field(ge=1)]


class Script(Record):
    """Steps of round 1, and of further rounds by number."""

    steps: tuple[Step, ...] = ()
    rounds: dict[RoundNumber, tuple[Step, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _round_one_once(self) -> "Script":
        if self.steps and 1 in self.rounds:
            raise ValueError("found steps and rounds.1, accepted: one of them for round 1")
        if not self.steps and not any(self.rounds.values()):
            raise ValueError("found no steps, accepted: steps, or rounds with steps")
        return self

    def of_round(self, number: int) -> tuple[Step, ...]:
        """Steps of a round, empty where the script has none for it."""
        if number == 1 and self.steps:
            return self.steps
        return self.rounds.get(number, ())

    @property
    def gold_units(self) -> tuple[str, ...]:
        """Units whose gold patch the script applies, sorted."""
        every = [*self.steps, *(step for steps in self.rounds.values() for step in steps)]
        applied = (step.applyDiff.unit for step in every if step.applyDiff is not None)
        return tuple(sorted({unit for unit in applied if unit is not None}))


def parse_script(text: str) -> Script:
    """The script of a YAML text. Raises ScriptError with everything that is wrong."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScriptError((f"not YAML: {_one_line(error)}",)) from error
    if not isinstance(document, dict):
        kind = "nothing" if document is None else type(document).__name__
        raise ScriptError((f"found {kind}, accepted: a mapping with steps or rounds",))
    try:
        return Script.model_validate(document)
    except ValidationError as error:
        raise ScriptError(tuple(_problem(entry) for entry in error.errors())) from error


def _problem(entry: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in entry["loc"])
    message = entry["msg"].removeprefix("Value error, ")
    kind: Literal["extra_forbidden"] | str = entry["type"]
    if kind == "extra_forbidden":
        message = "unknown field"
        if len(entry["loc"]) > 1 and isinstance(entry["loc"][-2], int):
            message = f"unknown step, accepted: {', '.join(STEP_KINDS)}"
    return f"{path.lstrip('.')}: {message}" if path else message


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
