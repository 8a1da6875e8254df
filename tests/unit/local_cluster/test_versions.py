"""Versions are read, compared and pinned in one file."""

import pytest

from local_cluster.errors import LocalClusterError
from local_cluster.pins import load_pins, parse_kubernetes_version, parse_version, supports_gangs
from local_cluster.settings import SOURCE

PINS = load_pins(SOURCE / "versions.toml")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("1.37.2", (1, 37, 2), id="plain"),
        pytest.param("v2.4.2", (2, 4, 2), id="a Go module's"),
        pytest.param("go1.26.8", (1, 26, 8), id="Go's own"),
        pytest.param("go1.27rc1", (1, 27), id="a release candidate"),
        pytest.param("go1.26.8 X:nocoverage", (1, 26, 8), id="with something after it"),
    ],
)
def test_a_version_is_read_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


def test_versions_are_compared_by_number_and_not_by_letter() -> None:
    assert parse_version("go1.9.1") < parse_version("1.26.0")


def test_text_without_a_version_is_refused() -> None:
    with pytest.raises(LocalClusterError, match="not a version"):
        parse_version("devel")


@pytest.mark.parametrize("text", ["1.37", "latest", "2.0.0", "1.37.2-rc.1", ""])
def test_what_is_no_kubernetes_release_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(LocalClusterError) as caught:
        parse_kubernetes_version(text)

    assert "1.34.4" in caught.value.report()


def test_a_leading_v_is_accepted() -> None:
    assert parse_kubernetes_version("v1.34.4") == "1.34.4"


@pytest.mark.parametrize(
    ("version", "known"), [("1.34.4", False), ("1.36.9", False), ("1.37.2", True)]
)
def test_the_gang_gate_is_given_only_to_versions_that_know_it(version: str, known: bool) -> None:
    assert supports_gangs(version) is known


def test_the_pinned_go_wheel_is_new_enough() -> None:
    wheel = PINS.go_wheel.partition("==")[2]

    assert parse_version(wheel) >= parse_version(PINS.go_minimum)


def test_every_product_is_pinned_by_a_version_or_by_a_source_with_a_module_file() -> None:
    for product in PINS.products:
        pinned_here = product.source and (SOURCE / product.source / "go.mod").exists()
        assert product.version or pinned_here, product.name


def test_the_default_kubernetes_version_has_its_module_files_in_the_repository() -> None:
    folder = SOURCE / "go" / "kubernetes" / PINS.kubernetes_version

    assert (folder / "go.sum").exists()
