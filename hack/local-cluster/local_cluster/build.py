"""Everything that is made once and kept in the cache: programs and images."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from local_cluster import registry
from local_cluster.components import FAREWELL, Supervisor, make_registry
from local_cluster.console import Console
from local_cluster.debian import (
    BUILD_PACKAGES,
    CNI_PACKAGE,
    REGISTRY_PACKAGE,
    RUN_PACKAGES,
    install_packages,
    unpack_package,
)
from local_cluster.images import ImageShop, make_base_images, make_infra_images
from local_cluster.locks import exclusive
from local_cluster.network import check_ports
from local_cluster.pins import Pins
from local_cluster.processes import ProcessTable
from local_cluster.products import build_products, make_recipes
from local_cluster.settings import Choices, Places, write_file


@dataclass(frozen=True, kw_only=True)
class Products:
    """What the build made.

    Attributes:
        programs: each Go product's directory of programs.
        cni_plugins: the directory of CNI plugins.
        images: references of the images of the cluster's own pods.
        base_images: done when the base images are in the registry; may still be running.
    """

    programs: Mapping[str, Path]
    cni_plugins: Path
    images: Mapping[str, str]
    base_images: Future[None]


class Builder:
    """Makes all products, those that take long at the same time."""

    def __init__(self, places: Places, choices: Choices, pins: Pins, console: Console) -> None:
        self._places = places
        self._choices = choices
        self._pins = pins
        self._console = console
        self._shop = ImageShop(places, choices.registry_port, pins, console)

    def prepare_machine(self) -> None:
        """Install the Debian packages that building and running take."""
        install_packages([*RUN_PACKAGES, *BUILD_PACKAGES], self._places, self._console)

    def start_registry(self) -> None:
        """Start the registry, in which images are kept."""
        edition = self._pins.debian_edition
        unpack_package(REGISTRY_PACKAGE, edition, self._places, self._console)
        storage = self._places.registry_storage
        storage.mkdir(parents=True, exist_ok=True)
        text = registry.render_config(storage, self._choices.registry_port)
        write_file(self._places.config / "registry.yml", text)
        component = make_registry(self._places, self._choices, self._pins)
        supervisor = Supervisor(self._places, [component])
        if not supervisor.is_running(component):
            check_ports(component.ports)
        supervisor.launch(component)
        supervisor.wait(component)

    def build(self, extra: Iterable[str] = ()) -> Products:
        """Build what the cache lacks; the registry must run."""
        lane = ThreadPoolExecutor(max_workers=1)
        base_images = lane.submit(self._build_base_images)
        lane.shutdown(wait=False)
        cni = unpack_package(CNI_PACKAGE, self._pins.debian_edition, self._places, self._console)
        recipes = make_recipes(self._pins, self._choices.kubernetes_version, extra)
        programs = build_products(recipes, self._pins, self._places, self._console)
        images = make_infra_images(self._pins, programs, self._places, self._console)
        return Products(
            programs=programs,
            cni_plugins=cni / "usr/lib/cni",
            images={name: self._shop.ensure(image) for name, image in images.items()},
            base_images=base_images,
        )

    def _build_base_images(self) -> None:
        for image in make_base_images(self._pins, self._places, self._choices.registry_port):
            self._shop.ensure(image)


def build_only(
    places: Places, choices: Choices, pins: Pins, console: Console, extra: Iterable[str]
) -> Mapping[str, Path]:
    """Build without a cluster: a registry of our own runs for as long as it takes.

    The running cluster's registry serves as well, if the cluster in this state directory runs.
    """
    registry_runs = ProcessTable(places.state, places.processes).find("registry") is not None
    own = places if registry_runs else _build_places(places)
    with exclusive(_build_lock(places), console.say):
        builder = Builder(own, choices, pins, console)
        builder.prepare_machine()
        builder.start_registry()
        try:
            products = builder.build(extra)
            products.base_images.result()
        finally:
            if not registry_runs:
                _clear_build(own)
    return products.programs


def clear_leftover_build(places: Places, console: Console) -> None:
    """End the registry that a killed `build` left; wait for a `build` that still runs."""
    with exclusive(_build_lock(places), console.say):
        _clear_build(_build_places(places))


def _build_places(places: Places) -> Places:
    return Places(places.cache / "build", places.cache)


def _build_lock(places: Places) -> Path:
    return places.cache / ".build.lock"


def _clear_build(places: Places) -> None:
    ProcessTable(places.state, places.processes).stop("registry", FAREWELL)
    shutil.rmtree(places.state, ignore_errors=True)
