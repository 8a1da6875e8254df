"""Products are cached by what they are made from, and by nothing else."""

from dataclasses import replace
from pathlib import Path

from local_cluster.hashing import hash_content
from local_cluster.pins import load_pins
from local_cluster.products import (
    KUBERNETES_PROGRAMS,
    Recipe,
    link_programs,
    make_kubernetes_recipe,
    make_recipes,
    render_kubernetes_module,
)
from local_cluster.settings import SOURCE, Places

RECIPE = Recipe(name="tool", usual_seconds=10, install=("example.org/tool@v1.0.0",))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_the_same_sources_have_the_same_hash_wherever_they_lie(tmp_path: Path) -> None:
    here = write(tmp_path / "here", {"a": "1", "b/c": "2"})
    there = write(tmp_path / "there", {"b/c": "2", "a": "1"})

    assert hash_content({"x": 1, "y": 2}, [here]) == hash_content({"y": 2, "x": 1}, [there])


def test_content_names_and_facts_each_change_the_hash(tmp_path: Path) -> None:
    hashes = {
        hash_content({}, [write(tmp_path / "1", {"a": "1"})]),
        hash_content({}, [write(tmp_path / "2", {"a": "2"})]),
        hash_content({}, [write(tmp_path / "3", {"b": "1"})]),
        hash_content({"version": 1}, [tmp_path / "1"]),
    }

    assert len(hashes) == 4


def test_bytes_cannot_move_between_files_unnoticed(tmp_path: Path) -> None:
    one = write(tmp_path / "1", {"a": "xy", "b": ""})
    other = write(tmp_path / "2", {"a": "x", "b": "y"})

    assert hash_content({}, [one]) != hash_content({}, [other])


def test_a_recipes_key_follows_version_and_flags() -> None:
    keys = {
        RECIPE.key,
        replace(RECIPE, install=("example.org/tool@v1.0.1",)).key,
        replace(RECIPE, tags="seccomp").key,
        replace(RECIPE, ldflags="").key,
        replace(RECIPE, cgo=True).key,
    }

    assert len(keys) == 5


def test_how_long_it_usually_takes_does_not_change_the_key() -> None:
    assert replace(RECIPE, usual_seconds=999).key == RECIPE.key


def test_two_kubernetes_versions_are_two_products() -> None:
    assert make_kubernetes_recipe("1.34.4", 1).key != make_kubernetes_recipe("1.37.2", 1).key


def test_an_optional_product_is_built_only_when_asked_for() -> None:
    pins = load_pins(SOURCE / "versions.toml")

    def names(*extra: str) -> list[str]:
        return [recipe.name for recipe in make_recipes(pins, "1.37.2", extra)]

    assert "kwok" not in names()
    assert "kwok" in names("kwok")


def test_the_module_file_takes_the_published_staging_modules_of_the_same_release() -> None:
    upstream = """\
module k8s.io/kubernetes

go 1.26.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""

    text = render_kubernetes_module("1.37.2", upstream)

    assert "go 1.26.0\n" in text
    assert "require k8s.io/kubernetes v1.37.2\n" in text
    assert "\tk8s.io/client-go => k8s.io/client-go v0.37.2\n" in text
    assert "staging" not in text


def test_the_multicall_binary_is_linked_under_every_name(tmp_path: Path) -> None:
    kubernetes = write(tmp_path / "kubernetes/bin", {"kubernetes": ""})
    runc = write(tmp_path / "runc/bin", {"runc": ""})
    places = Places(tmp_path / "state", tmp_path / "cache")

    link_programs(places, {"kubernetes": kubernetes, "runc": runc})
    link_programs(places, {"kubernetes": kubernetes, "runc": runc})

    assert {path.name for path in places.bin.iterdir()} == {*KUBERNETES_PROGRAMS, "runc"}
    assert (places.bin / "kubectl").resolve() == kubernetes / "kubernetes"
