"""The pinned versions: what versions.toml says, as data."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.errors import LocalClusterError

# Native gangs: below this minor version the gate is unknown, and unknown gates are fatal.
GANG_SINCE = (1, 37)


@dataclass(frozen=True, kw_only=True)
class ProductPin:
    """One Go program, or a few of one module, and how it is built.

    Either `module` and `version` are given (built with `go install`) or `source`, a folder
    with its own go.mod.
    """

    name: str
    module: str = ""
    version: str = ""
    packages: tuple[str, ...] = ()
    source: str = ""
    tags: str = ""
    cgo: bool = False
    optional: bool = False
    usual_seconds: int = 120


@dataclass(frozen=True, kw_only=True)
class Pins:
    """Everything that versions.toml says."""

    go_minimum: str
    go_wheel: str
    debian_suite: str
    debian_edition: int
    kubernetes_version: str
    kubernetes_usual_seconds: int
    products: tuple[ProductPin, ...]


def load_pins(path: Path) -> Pins:
    """Read versions.toml."""
    tables = tomllib.loads(path.read_text())
    return Pins(
        go_minimum=tables["go"]["minimum"],
        go_wheel=tables["go"]["wheel"],
        debian_suite=tables["debian"]["suite"],
        debian_edition=tables["debian"]["edition"],
        kubernetes_version=tables["kubernetes"]["version"],
        kubernetes_usual_seconds=tables["kubernetes"]["usual_seconds"],
        products=tuple(_read_product(*entry) for entry in tables["products"].items()),
    )


def _read_product(name: str, table: dict[str, Any]) -> ProductPin:
    packages = tuple(table.pop("packages", ()))
    return ProductPin(name=name, packages=packages, **table)


def parse_version(text: str) -> tuple[int, ...]:
    """`v1.37.2`, `go1.26.8` or `1.27rc1` as numbers; what follows the numbers is dropped."""
    match = re.match(r"(?:v|go)?(\d+(?:\.\d+)*)", text)
    if match is None:
        raise LocalClusterError(f"{text!r} is not a version", advice="write it like 1.37.2")
    return tuple(int(number) for number in match.group(1).split("."))


def parse_kubernetes_version(text: str) -> str:
    """A Kubernetes version as `1.37.2`, or an error that says how it is written."""
    version = text.removeprefix("v")
    if not re.fullmatch(r"1\.\d+\.\d+", version):
        raise LocalClusterError(
            f"{text!r} is not a Kubernetes version", advice="write it like 1.37.2 or 1.34.4"
        )
    return version


def supports_gangs(kubernetes_version: str) -> bool:
    """Whether the version knows the feature gate GenericWorkload."""
    return parse_version(kubernetes_version)[:2] >= GANG_SINCE
