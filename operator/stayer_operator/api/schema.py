"""From a pydantic model to a structural schema (OpenAPI v3.0 as apiextensions.k8s.io/v1 has it).

Structural: no $ref, every node typed, no nullable unions; `additionalProperties` only for maps, so
that unknown fields are pruned by the API server and refused by kubectl's strict validation.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_FIRST = ("description", "type", "format", "enum", "default")
_KEPT = frozenset(
    {
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
    }
)


class SchemaError(Exception):
    """A model says something that a structural schema cannot."""


def structural_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The structural schema of a model. Raises SchemaError naming the path of what does not fit,
    fields without a description included.
    """
    document = model.model_json_schema(by_alias=True, mode="validation")
    definitions = document.get("$defs", {})
    return _node(document, definitions, model.__name__)


def _node(raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> dict[str, Any]:
    node = _flatten(raw, definitions, path)
    kept = [key for key in node if key in _KEPT or key.startswith("x-")]
    out = {key: node[key] for key in sorted(kept, key=_rank)}
    if node.get("x-kubernetes-int-or-string"):
        out.pop("type", None)
        out.pop("maxLength", None)
        out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return out
    if "const" in node:
        out["enum"], out["type"] = [node["const"]], "string"
    if "type" not in out:
        raise SchemaError(f"{path}: has no type: {dict(node)}")
    if out["type"] == "array":
        out["items"] = _node(node["items"], definitions, f"{path}[]")
    if out["type"] == "object":
        out |= _object(node, definitions, path)
    return out


def _rank(key: str) -> tuple[int, str]:
    """What people read first comes first, the rest in alphabetical order."""
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)


def _object(node: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> dict[str, Any]:
    values = node.get("additionalProperties")
    if isinstance(values, Mapping):
        return {"additionalProperties": _node(values, definitions, f"{path}.*")}
    properties = {
        name: _property(raw, definitions, f"{path}.{name}", name in node.get("required", ()))
        for name, raw in node.get("properties", {}).items()
    }
    return {"properties": properties} if properties else {}


def _property(
    raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str, required: bool
) -> dict[str, Any]:
    """A field. An optional nested object without required fields defaults to {}, so that the API
    server fills in the defaults inside.
    """
    out = _node(raw, definitions, path)
    if not out.get("description"):
        raise SchemaError(f"{path}: has no description")
    if out.get("default", "") is None:
        del out["default"]
    if "$ref" in raw and not required and "required" not in out and "default" not in out:
        out["default"] = {}
    if isinstance(out.get("default"), str | int) and out["default"] != "":
        # kubectl explain does not show defaults.
        out["description"] += f" Default: {json.dumps(out['default']).strip(chr(34))}."
    if "default" in out and out["type"] == "array":
        out["default"] = [_without_defaults(item) for item in out["default"]]
    return out


def _without_defaults(value: Any) -> Any:
    """Defaults of a list keep what is set; the rest is filled in from the items' own schema."""
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if inner is not None}
    return value


def _flatten(raw: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Follow $ref and drop the null of an optional; the outer node's words win."""
    node = dict(raw)
    if "anyOf" in node and not node.get("x-kubernetes-int-or-string"):
        options = [option for option in node.pop("anyOf") if option.get("type") != "null"]
        if len(options) != 1:
            raise SchemaError(f"{path}: a union of {len(options)} types")
        node = _merge(_flatten(options[0], definitions, path), node)
    if "$ref" in node:
        name = node.pop("$ref").rsplit("/", 1)[-1]
        node = _merge(_flatten(definitions[name], definitions, path), node)
    return node


def _merge(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**inner, **outer}
    key = "x-kubernetes-validations"
    if key in inner and key in outer:
        merged[key] = [*inner[key], *outer[key]]
    return merged
