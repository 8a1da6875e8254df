"""The description of a harness: the schema of `descriptions/*.yaml`."""

import string
from typing import Annotated, Any, Literal, Self

import pydantic
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.alias_generators import to_camel

from stayer_evaluator.records.outcomes import FailureMode

VARIABLES = frozenset({"prompt", "prompt_file", "model", "workspace", "home", "seconds"})
"""What a template may name: `${prompt}`, ... ; `$$` is a dollar sign.

prompt: the round's text; prompt_file: its path in the agent's HOME; model: the trial's model or
nothing; seconds: whole seconds of the round.
"""


class BadDescription(ValueError):  # noqa: N818 (reads as what happened)
    """A description that says what nobody understands; the message names every problem."""


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


def _template(text: str) -> str:
    found = string.Template(text)
    if not found.is_valid():
        raise ValueError(f"{text!r} is no template: a dollar sign is written $$")
    unknown = sorted(set(found.get_identifiers()) - VARIABLES)
    if unknown:
        raise ValueError(f"{text!r} names {unknown}; accepted are {sorted(VARIABLES)}")
    return text


Template = Annotated[str, pydantic.AfterValidator(_template)]


class HarnessFile(_Part):
    """A file written below the agent's HOME before each round."""

    path: str = Field(description="relative to HOME")
    content: Template
    mode: str = Field(default="0644", pattern=r"^0[0-7]{3}$")

    @model_validator(mode="after")
    def _below_home(self) -> Self:
        if self.path.startswith("/") or ".." in self.path.split("/") or not self.path:
            raise ValueError(f"path {self.path!r} must lie below HOME")
        return self


class Transcript(_Part):
    """Where the harness tells what it did, and who reads that."""

    parser: str = "none"
    path: str | None = Field(
        default=None, description="file below HOME; without one the job's own output is read"
    )


class _Harness(_Part):
    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    title: str = ""
    script: Literal["required", "refused"] = "refused"
    gold: Literal["always", "never", "by-script"] = Field(
        default="never", description="whether its trials may read the task's gold patches"
    )
    max_rounds: int | None = Field(
        default=None, ge=1, description="fewer rounds than the loop profile allows"
    )


class StepsHarness(_Harness):
    """Steps that the recorder drives itself, one job each."""

    kind: Literal["steps"]
    steps: Literal["gold", "script", "none"]


class CommandHarness(_Harness):
    """A program started once a round in the task container."""

    kind: Literal["command"]
    command: tuple[Template, ...] = Field(min_length=1)
    stdin: Literal["prompt", "nothing"] = "nothing"
    env: dict[str, Template] = Field(default_factory=dict)
    files: tuple[HarnessFile, ...] = ()
    exit_codes: dict[int, FailureMode] = Field(
        default_factory=dict, description="what an exit means; others but 0: unknown_agent_error"
    )
    transcript: Transcript = Transcript()


Harness = StepsHarness | CommandHarness
_harness: TypeAdapter[StepsHarness | CommandHarness] = TypeAdapter(
    Annotated[StepsHarness | CommandHarness, Field(discriminator="kind")]
)


def parse_description(text: str, source: str) -> Harness:
    """The description in a YAML text. Raises BadDescription naming `source` and every problem."""
    try:
        return _harness.validate_python(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadDescription(f"{source}: no YAML: {error}") from error
    except pydantic.ValidationError as error:
        problems = "; ".join(_problem(found) for found in error.errors())
        raise BadDescription(f"{source}: {problems}") from error


def _problem(found: Any) -> str:
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}"


def render(template: str, values: dict[str, str]) -> str:
    """A template with its variables filled in."""
    return string.Template(template).substitute(values)
