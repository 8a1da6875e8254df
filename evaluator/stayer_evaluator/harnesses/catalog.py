"""The harnesses that this package brings. Reads package resources, nothing else."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from stayer_evaluator.harnesses.describe import BadDescription, Harness, parse_description

_SUFFIX = ".yaml"


@cache
def harnesses() -> Mapping[str, Harness]:
    """Every known harness by name, sorted."""
    found = {}
    folder = files("stayer_evaluator.harnesses") / "descriptions"
    for resource in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not resource.name.endswith(_SUFFIX):
            continue
        harness = parse_description(resource.read_text(encoding="utf-8"), resource.name)
        if harness.name != resource.name.removesuffix(_SUFFIX):
            raise BadDescription(f"{resource.name}: name is {harness.name!r}, must be the file's")
        found[harness.name] = harness
    return MappingProxyType(found)
