"""The raw spec of a run -> RunSpec, or everything that is wrong with its form."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from pydantic import ValidationError

from stayer_operator.api.names import RUN_NAME_LIMIT
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.problems import Problem, schema_problems, shown


def parse_spec(manifest: Mapping[str, Any]) -> RunSpec | tuple[Problem, ...]:
    """The spec, or its problems. The API server checked it against the schema already; an object
    from an older schema, or one on a person's machine, was not.

    Equal specs, as far as they are JSON, give the same object: a run is planned many times, and
    each write of its status makes another document with the same spec.
    """
    written = manifest.get("spec") or {}
    try:
        return _parsed(_Written(written))
    except orjson.JSONEncodeError:
        return _parse(written)


class _Written:
    """A spec as it was written. Equal: the text tells 1 from true, the values tell no number from
    nothing.
    """

    __slots__ = ("spec", "text")

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.text = orjson.dumps(spec, option=orjson.OPT_PASSTHROUGH_DATETIME)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Written):
            return NotImplemented
        return self.text == other.text and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=32)
def _parsed(written: _Written) -> RunSpec | tuple[Problem, ...]:
    return _parse(written.spec)


def _parse(spec: Mapping[str, Any]) -> RunSpec | tuple[Problem, ...]:
    try:
        return RunSpec.model_validate(_without_nulls(spec))
    except ValidationError as error:
        return schema_problems("spec", error)


def name_problems(name: str) -> tuple[Problem, ...]:
    """What keeps a run's name from being the start of trial and pod names."""
    if len(name) <= RUN_NAME_LIMIT and "." not in name:
        return ()
    return (
        Problem(
            field="metadata.name",
            found=f"{shown(name)} ({len(name)} characters)",
            accepted=f"at most {RUN_NAME_LIMIT} characters of a-z, 0-9 and -",
        ),
    )


def _without_nulls(value: Any) -> Any:
    """`field: null` means the same as no field, as the API server has it."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
