"""The base of every API model, and the pieces that several of them use."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """Part of an object. Spelled in camelCase outside, unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def cel(
    rule: str, message: str, *, found: tuple[str, ...] = (), field: str | None = None
) -> dict[str, str]:
    """One x-kubernetes-validations entry. `message` names the field and what is accepted; `found`
    is a format (%s, %d) and the CEL expressions for it, added to the message; `field` is a path
    below the rule. Formatted, since a concatenation of numbers has no bounded cost.
    """
    entry = {"rule": rule, "message": message}
    if found:
        text = f"{message.replace('%', '%%')} (found: {found[0]})"
        entry["messageExpression"] = f"{_quoted(text)}.format([{', '.join(found[1:])}])"
    if field is not None:
        entry["fieldPath"] = field
    return entry


def rules(*entries: Mapping[str, str]) -> dict[str, Any]:
    """CEL rules for `json_schema_extra`."""
    return {"x-kubernetes-validations": [dict(entry) for entry in entries]}


def map_list(*keys: str) -> dict[str, Any]:
    """A list whose entries are told apart by `keys`: the API server refuses duplicates."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


SET_LIST: dict[str, Any] = {"x-kubernetes-list-type": "set"}

GLOB_PATTERN = r"^([A-Za-z0-9._*?-]|\[!?[A-Za-z0-9._-]+\])+$"
GLOB_HELP = "letters, digits, '.', '_', '-', and the wildcards *, ?, [abc], [!abc]"

Glob = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        json_schema_extra=rules(
            cel(
                f"self.matches(r'{GLOB_PATTERN}')",
                f"not a glob; accepted: {GLOB_HELP}",
                found=("%s", "self"),
            )
        ),
    ),
]

EntryName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
]
ModelName = Annotated[
    str,
    Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?$"),
]
ObjectName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
]
