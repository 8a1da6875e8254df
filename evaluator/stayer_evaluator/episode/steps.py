"""Scripts of the `scripted` harness: YAML text → typed steps. Pure.

```yaml
steps:                                   # round 1
  - applyDiff: {unit: parser}            # the task's gold, and its file in requirement_patches
  - applyDiff: {diff: "<text>", patchOf: parser}
  - applyDiff: {unit: parser, reverse: true}
  - writeFile: {path: a/b.txt, content: "...", mode: "0644"}
  - run: {command: ["bash", "-c", "..."], timeoutSeconds: 60}
  - wait: {seconds: 5}
  - exit: {code: 3}                      # 0: none, else unknown_agent_error; or {failureMode: ...}
  - hang: {}
rounds: {2: [...]}                       # further rounds
```
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import pydantic
import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from stayer_evaluator.records.outcomes import FailureMode

MAX_STEPS = 10_000


class BadScript(ValueError):  # noqa: N818 (reads as what happened)
    """A script with problems, all of them: `problems` holds one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class _Step(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


def _below_workspace(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or not path or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} must be a relative path without '.' and '..'")
    return path


Slug = str


class ApplyDiff(_Step):
    """Apply a unit's gold patch or a given diff, and copy it to requirement_patches."""

    kind: Literal["applyDiff"] = "applyDiff"
    unit: Slug | None = Field(default=None, min_length=1)
    diff: str | None = None
    patch_of: tuple[Slug, ...] = Field(default=(), description="one name or several")
    reverse: bool = False

    @pydantic.field_validator("patch_of", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.unit is None) == (self.diff is None):
            raise ValueError("wants exactly one of unit and diff")
        if self.patch_of and self.diff is None:
            raise ValueError("patchOf goes with diff; a unit's patch is its own")
        return self


class WriteFile(_Step):
    """Create or replace one file."""

    kind: Literal["writeFile"] = "writeFile"
    path: str
    content: str
    mode: str = Field(default="0644", pattern=r"^0?[0-7]{3}$")

    @pydantic.field_validator("path")
    @classmethod
    def _path(cls, value: str) -> str:
        return _below_workspace(value)


class Run(_Step):
    """Run a command; how it ends does not matter."""

    kind: Literal["run"] = "run"
    command: tuple[str, ...] = Field(min_length=1)
    timeout_seconds: float = Field(default=600, gt=0, description="evaluation.md §4: at most 600 s")


class Wait(_Step):
    """Let agent time pass."""

    kind: Literal["wait"] = "wait"
    seconds: float = Field(ge=0)


class Exit(_Step):
    """End the round."""

    kind: Literal["exit"] = "exit"
    code: int = Field(default=0, ge=0, le=255)
    failure_mode: FailureMode | None = None

    @property
    def outcome(self) -> FailureMode:
        """How the round ends."""
        if self.failure_mode is not None:
            return self.failure_mode
        return FailureMode.NONE if self.code == 0 else FailureMode.UNKNOWN_AGENT_ERROR


class Hang(_Step):
    """Do nothing until the time limit."""

    kind: Literal["hang"] = "hang"


Step = ApplyDiff | WriteFile | Run | Wait | Exit | Hang
STEPS: Mapping[str, type[Step]] = {
    "applyDiff": ApplyDiff,
    "writeFile": WriteFile,
    "run": Run,
    "wait": Wait,
    "exit": Exit,
    "hang": Hang,
}


@dataclass(frozen=True, slots=True)
class Script:
    """Steps by round."""

    rounds: Mapping[int, tuple[Step, ...]]

    def steps(self, number: int) -> tuple[Step, ...]:
        """Of that round; none where the script names none."""
        return self.rounds.get(number, ())

    @property
    def units(self) -> tuple[str, ...]:
        """Units whose gold patch it applies, sorted."""
        found = {step.unit for steps in self.rounds.values() for step in steps
                 if isinstance(step, ApplyDiff) and step.unit is not None}  # fmt: skip
        return tuple(sorted(found))


def parse_script(text: str) -> Script:
    """The script in a YAML text. Raises BadScript with every problem, each with its place."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScript([f"no YAML: {' '.join(str(error).split())}"]) from error
    problems: list[str] = []
    rounds = {
        number: tuple(_steps(where, found, problems))
        for number, (where, found) in _rounds(document, problems).items()
    }
    if sum(map(len, rounds.values())) > MAX_STEPS:
        problems.append(f"more than {MAX_STEPS} steps")
    if problems:
        raise BadScript(problems)
    return Script(rounds)


def _rounds(document: Any, problems: list[str]) -> dict[int, tuple[str, Any]]:
    """Round number → (place in the script, what stands there)."""
    if not isinstance(document, dict):
        problems.append(f"is {_kind(document)}, must be a mapping with steps or rounds")
        return {}
    for key in sorted(map(str, document.keys() - {"steps", "rounds"})):
        problems.append(f"unknown field {key!r}; accepted are steps, rounds")
    found: dict[int, tuple[str, Any]] = {}
    if "steps" in document:
        found[1] = ("steps", document["steps"])
    further = document.get("rounds")
    further = {} if further is None else further
    if not isinstance(further, dict):
        problems.append(f"rounds is {_kind(further)}, must be a mapping from round number to steps")
        return found
    for number, steps in further.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            problems.append(f"rounds: {number!r} is no round number (1, 2, ...)")
        elif number in found:
            problems.append(f"rounds.{number}: round 1 stands under steps already")
        else:
            found[number] = (f"rounds.{number}", steps)
    return found


def _steps(where: str, found: Any, problems: list[str]) -> list[Step]:
    if not isinstance(found, list):
        problems.append(f"{where} is {_kind(found)}, must be a list of steps")
        return []
    steps = []
    for index, item in enumerate(found):
        step = _step(f"{where}[{index}]", item, problems)
        if step is not None:
            steps.append(step)
    return steps


def _step(where: str, item: Any, problems: list[str]) -> Step | None:
    if not isinstance(item, dict) or len(item) != 1:
        problems.append(
            f"{where}: a step is one mapping such as `run: {{...}}`, found {item!r:.80}"
        )
        return None
    ((name, body),) = item.items()
    model = STEPS.get(name)
    if model is None:
        problems.append(f"{where}: unknown step {name!r}; accepted are {', '.join(STEPS)}")
        return None
    try:
        return model.model_validate(body if body is not None else {})
    except pydantic.ValidationError as error:
        for problem in error.errors():
            field = ".".join([where, name, *map(str, problem["loc"])])
            problems.append(f"{field}: {problem['msg']}, found {problem['input']!r:.80}")
        return None


def _kind(value: Any) -> str:
    return "empty" if value is None else f"a {type(value).__name__}"
