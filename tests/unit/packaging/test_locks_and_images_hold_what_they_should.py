"""What is in the images is decided by the locks; what may not be in them is checked here."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
EXTRAS = ("operator", "evaluator", "cli", "dev")


def locked(extra: str) -> dict[str, str]:
    text = (ROOT / f"requirements/{extra}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", text, re.MULTILINE))


def wanted() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return {"base": project["dependencies"], **extras}


def load_build() -> ModuleType:
    path = str(ROOT / "images/build")
    spec = spec_from_loader("images_build", SourceFileLoader("images_build", path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_operators_image_holds_no_kubernetes_package() -> None:
    assert "kopf" in locked("operator")
    assert "kubernetes" not in locked("operator")


@pytest.mark.parametrize("foreign", ["kopf", "kubernetes", "aiohttp", "typer"])
def test_the_evaluators_image_holds_nothing_of_the_operator(foreign: str) -> None:
    assert foreign not in locked("evaluator")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_locked_package_has_hashes_and_no_address(extra: str) -> None:
    text = (ROOT / f"requirements/{extra}.txt").read_text()
    assert "://" not in re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    for block in re.split(r"\n(?=[a-z0-9])", text):
        if "==" in block.splitlines()[0]:
            assert "--hash=sha256:" in block, block.splitlines()[0]


@pytest.mark.parametrize("extra", EXTRAS)
def test_locks_agree_on_versions(extra: str) -> None:
    everything = locked("dev")
    for name, version in locked(extra).items():
        assert everything[name] == version, name


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_dependency_has_a_lower_bound_and_is_locked(extra: str) -> None:
    names = locked(extra)
    for requirement in wanted()[extra] + wanted()["base"]:
        if requirement.startswith("stayer["):
            continue
        assert ">=" in requirement, requirement
        name = re.split(r"[\[>=<]", requirement)[0]
        assert name in names, f"{name}: run `make lock`"


def test_an_images_tag_follows_its_sources_and_nothing_else(tmp_path: Path) -> None:
    build: Any = load_build()
    tree = tmp_path / "package"
    (tree / "__pycache__").mkdir(parents=True)
    (tree / "a.py").write_text("x = 1\n")
    first = build.hash_sources([tree], ["base"])
    (tree / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert build.hash_sources([tree], ["base"]) == first
    assert build.hash_sources([tree], ["another base"]) != first
    (tree / "a.py").write_text("x = 2\n")
    assert build.hash_sources([tree], ["base"]) != first


def test_the_values_name_what_was_built(tmp_path: Path) -> None:
    build: Any = load_build()
    _, options = build.parse(["--registry", "registry.example/lab/"])
    assert options.base_image == build.DEFAULT_BASE
    target = tmp_path / "build" / "images.yaml"
    build.write_values({"runner": "h-1"}, options, target)
    assert target.read_text() == (
        "images:\n  runner:\n    repository: registry.example/lab/stayer/runner\n    tag: h-1\n"
    )


def test_a_loopback_registry_brings_its_own_base_image() -> None:
    build: Any = load_build()
    _, options = build.parse(["--registry", "127.0.0.1:5000"])
    assert options.base_image == "127.0.0.1:5000/base/debian-python:12"
