"""Builds images with debootstrap and buildah and keeps them in the local registry.

The registry is the cache: each image is also tagged with a hash of what it is made from, and
is built only when that tag is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from local_cluster import registry
from local_cluster.commands import read_output, run_logged
from local_cluster.console import Console
from local_cluster.debian import PROMETHEUS_PACKAGE, find_sources, unpack_package
from local_cluster.hashing import hash_content
from local_cluster.locks import exclusive
from local_cluster.pins import Pins
from local_cluster.settings import SOURCE, Places

BASE_TAG = "12"
IMAGE_SOURCES = SOURCE / "images"
ADVICE = "see the log; `cluster build` tries the images again"


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image: its name in the registry, what it is made from, and how to lay that out.

    Attributes:
        content: hash of everything that it is made from.
        prepare: fills an empty directory with the build context, Dockerfile included.
        base: the image that its Dockerfile begins with; it must be in the registry first.
    """

    name: str
    content: str
    prepare: Callable[[Path], None]
    base: str | None = None
    tag: str = ""
    usual_seconds: int = 10

    @property
    def hash_tag(self) -> str:
        """The tag that says what the image is made from."""
        return f"h-{self.content}"


class ImageShop:
    """Makes images available in the registry of this cluster."""

    def __init__(self, places: Places, port: int, pins: Pins, console: Console) -> None:
        self._places = places
        self._port = port
        self._pins = pins
        self._console = console

    def reference(self, image: Image) -> str:
        """What a pod names to get exactly this image."""
        return f"127.0.0.1:{self._port}/{image.name}:{image.hash_tag}"

    def ensure(self, image: Image) -> str:
        """Build and push the image if the registry lacks it; return its reference."""
        with exclusive(self._work(image) / ".lock", self._console.say):
            if not registry.has_manifest(self._port, image.name, image.hash_tag):
                log = self._log(image)
                with self._console.step(f"image {image.name}", image.usual_seconds, log):
                    self._build(image)
            if image.tag:
                registry.copy_tag(self._port, image.name, image.hash_tag, image.tag)
        return self.reference(image)

    def _work(self, image: Image) -> Path:
        return self._places.cache / "images" / image.name.replace("/", "-")

    def _log(self, image: Image) -> Path:
        return self._places.build_logs / f"image-{image.name.rpartition('/')[2]}.log"

    def _build(self, image: Image) -> None:
        work = self._work(image) / "work"
        _remove_tree(work)
        context = work / "context"
        context.mkdir(parents=True)
        log = self._log(image)
        what = f"image {image.name}"
        image.prepare(context)
        buildah: list[str | Path] = [
            "buildah",
            *("--root", work / "storage", "--runroot", work / "run"),
            *("--storage-driver", "overlay"),
        ]
        build = ["bud", "--isolation", "chroot", "--network", "host", "--tls-verify=false"]
        build += ["--layers=false", "--tag", self.reference(image)]
        if image.base is not None:
            build += ["--build-arg", f"BASE={image.base}"]
        # One shell, because what is mounted for the build is gone with its mount namespace.
        push = ["push", "--tls-verify=false", self.reference(image)]
        script = '"$@" && exec ' + " ".join(map(str, [*buildah, *push]))
        command = ["sh", "-c", script, "sh", *buildah, *build, context]
        # Without it buildah makes /etc/cni, although no image needs a network of its own.
        settings = work / "containers.conf"
        settings.write_text(f'[network]\nnetwork_config_dir = "{work}/cni"\n')
        env = {"CONTAINERS_CONF": str(settings)}
        run_logged(what, command, log, contained=True, advice=ADVICE, env=env)
        _remove_tree(work)


def _remove_tree(path: Path) -> None:
    # Images hold directories without write permission; root removes them nevertheless.
    if path.exists():
        shutil.rmtree(path)


def make_base_images(pins: Pins, places: Places, port: int) -> tuple[Image, ...]:
    """The images that task and runner images begin with, each on top of the one before."""
    edition = {"suite": pins.debian_suite, "edition": pins.debian_edition}
    folder = IMAGE_SOURCES / "debian-python"
    images = [
        Image(
            name="base/debian-python",
            content=hash_content(edition, [folder]),
            prepare=lambda context: _bootstrap(folder, context, pins, places),
            tag=BASE_TAG,
            usual_seconds=180,
        )
    ]
    for name in ("debian-task", "debian-node"):
        below = images[-1]
        folder_above = IMAGE_SOURCES / name
        images.append(
            Image(
                name=f"base/{name}",
                content=hash_content({"below": below.content}, [folder_above]),
                prepare=_copier(folder_above),
                base=f"127.0.0.1:{port}/{below.name}:{below.hash_tag}",
                tag=BASE_TAG,
                usual_seconds=90,
            )
        )
    return tuple(images)


def _copier(folder: Path) -> Callable[[Path], None]:
    return lambda context: _copy_folder(folder, context)


def _copy_folder(folder: Path, context: Path) -> None:
    shutil.copytree(folder, context, dirs_exist_ok=True)


def _bootstrap(folder: Path, context: Path, pins: Pins, places: Places) -> None:
    _copy_folder(folder, context)
    sources = find_sources(pins.debian_suite)
    packages = (folder / "packages").read_text().split()
    root = context / "rootfs"
    run_logged(
        "debootstrap of the base image",
        [
            "debootstrap",
            "--variant=minbase",
            f"--include={','.join(packages)}",
            pins.debian_suite,
            root,
            sources[0].uri,
        ],
        places.build_logs / "image-debootstrap.log",
        contained=True,
        advice="the machine's Debian mirror must be reachable; then run it again",
    )
    lines = [f"deb {source.uri} {source.suite} main\n" for source in sources]
    (root / "etc/apt/sources.list").write_text("".join(lines))
    for pattern in ("var/cache/apt/archives/*.deb", "var/cache/apt/*.bin", "var/lib/apt/lists/*_*"):
        for leftover in root.glob(pattern):
            leftover.unlink()


def make_infra_images(
    pins: Pins, products: Mapping[str, Path], places: Places, console: Console
) -> dict[str, Image]:
    """The small images of the cluster's own pods, by short name."""
    pause = IMAGE_SOURCES / "pause"
    images = {
        "pause": Image(
            name="local-cluster/pause",
            content=hash_content({}, [pause]),
            prepare=lambda context: _compile_pause(pause, context, places),
        ),
        "prometheus": Image(
            name="local-cluster/prometheus",
            content=hash_content({"edition": pins.debian_edition}, [IMAGE_SOURCES / "prometheus"]),
            prepare=lambda context: _lay_out_prometheus(context, pins, places, console),
        ),
    }
    for name in ("coredns", "versitygw", "pod-targets"):
        images[name.replace("-", "_")] = Image(
            name=f"local-cluster/{name}",
            content=hash_content({"product": products[name].parent.name}),
            prepare=_static_program(products[name] / name),
        )
    return images


def _static_program(program: Path) -> Callable[[Path], None]:
    def prepare(context: Path) -> None:
        shutil.copy(program, context / program.name)
        (context / "tmp").mkdir(mode=0o1777)
        (context / "Dockerfile").write_text(
            f'FROM scratch\nCOPY {program.name} /\nENTRYPOINT ["/{program.name}"]\n'
        )

    return prepare


def _compile_pause(folder: Path, context: Path, places: Places) -> None:
    _copy_folder(folder, context)
    command: list[str | Path] = [
        "gcc",
        "-Os",
        "-static",
        "-s",
        "-Wall",
        "-o",
        context / "pause",
        folder / "pause.c",
    ]
    run_logged("compiling pause", command, places.build_logs / "image-pause.log")


def _lay_out_prometheus(context: Path, pins: Pins, places: Places, console: Console) -> None:
    """Debian's program, its web pages and the C library of this machine, which is a Debian too."""
    tree = unpack_package(PROMETHEUS_PACKAGE, pins.debian_edition, places, console)
    _copy_folder(IMAGE_SOURCES / "prometheus", context)
    root = context / "rootfs"
    program = tree / "usr/bin/prometheus"
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy(program, root / "usr/bin")
    pages = tree / "usr/share/prometheus"
    if pages.exists():
        shutil.copytree(pages, root / "usr/share/prometheus", symlinks=True)
    for library in parse_libraries(read_output(["ldd", program])):
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def parse_libraries(listing: str) -> tuple[Path, ...]:
    """The files that `ldd` names; virtual objects of the kernel have none."""
    words = (word for line in listing.splitlines() for word in line.split())
    return tuple(sorted({Path(word) for word in words if word.startswith("/")}))
