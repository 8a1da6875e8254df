"""The raw spec of a run -> RunSpec, or everything that is wrong with its form."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from stayer_operator.api.names import RUN_NAME_LIMIT
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.problems import Problem, schema_problems, shown


def parse_spec(manifest: Mapping[str, Any]) -> RunSpec | tuple[Problem, ...]:
    """The spec, or its problems. The API server checked it against the schema already; an object
    from an older schema, or one on a person's machine, was not.
    """
    try:
        return RunSpec.model_validate(_without_nulls(manifest.get("spec") or {}))
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
