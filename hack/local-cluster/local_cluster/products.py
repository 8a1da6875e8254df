"""Builds the Go programs, each cached by a hash of its pins, sources and flags."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from local_cluster.commands import read_output, run_logged
from local_cluster.console import Console
from local_cluster.gotool import find_go
from local_cluster.hashing import hash_content
from local_cluster.locks import exclusive
from local_cluster.pins import Pins, ProductPin
from local_cluster.settings import SOURCE, Places

KUBERNETES = "kubernetes"
KUBERNETES_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
STRIP = "-s -w"
BUILD_ADVICE = "the build needs the Go module proxy and about 6 GB of disk; run it again"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one product is built: everything that its hash covers."""

    name: str
    usual_seconds: int
    tags: str = ""
    cgo: bool = False
    ldflags: str = STRIP
    install: tuple[str, ...] = ()
    source: Path | None = None
    module_files: tuple[Path, ...] = ()
    kubernetes: str = ""

    @property
    def key(self) -> str:
        """The name of the product's directory in the cache."""
        facts = asdict(self) | {"source": None, "module_files": None, "usual_seconds": None}
        machine = os.uname().machine
        sources = [*([self.source / "main.go"] if self.source else []), *self.module_files]
        return f"{self.name}-{hash_content(facts | {'machine': machine}, sources)}"


def make_recipes(pins: Pins, kubernetes_version: str, extra: Iterable[str]) -> tuple[Recipe, ...]:
    """What has to be built, in the order in which the cluster needs it."""
    wanted = [pin for pin in pins.products if not pin.optional or pin.name in set(extra)]
    kubernetes = make_kubernetes_recipe(kubernetes_version, pins.kubernetes_usual_seconds)
    return (kubernetes, *(_make_recipe(pin) for pin in wanted))


def make_kubernetes_recipe(version: str, usual_seconds: int) -> Recipe:
    """The multi-call binary of one Kubernetes version, its go.mod from here if it is known."""
    source = SOURCE / "go" / KUBERNETES
    major, minor, _ = version.split(".")
    variables = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{k}={v}" for k, v in variables.items()]
    pinned = source / version
    return Recipe(
        name=KUBERNETES,
        usual_seconds=usual_seconds,
        ldflags=" ".join([STRIP, *stamps]),
        source=source,
        module_files=tuple(sorted(pinned.glob("go.*"))),
        kubernetes=version,
    )


def _make_recipe(pin: ProductPin) -> Recipe:
    source = SOURCE / pin.source if pin.source else None
    module_files = tuple(sorted(source.glob("go.*"))) if source else ()
    paths = [str(PurePosixPath(pin.module, package)) for package in pin.packages]
    return Recipe(
        name=pin.name,
        usual_seconds=pin.usual_seconds,
        tags=pin.tags,
        cgo=pin.cgo,
        install=tuple(f"{path}@{pin.version}" for path in paths),
        source=source,
        module_files=module_files,
    )


def build_products(
    recipes: Iterable[Recipe], pins: Pins, places: Places, console: Console
) -> dict[str, Path]:
    """Build what the cache lacks; return each product's directory of programs by name."""
    shelf = places.cache / "products"
    found: dict[str, Path] = {}
    for recipe in recipes:
        product = shelf / recipe.key
        if not product.exists():
            with exclusive(shelf / f".{recipe.name}.lock", console.say):
                if not product.exists():
                    go = find_go(pins, places, console)
                    log = places.build_logs / f"build-{recipe.name}.log"
                    with console.step(f"building {recipe.name}", recipe.usual_seconds, log):
                        _build(recipe, product, go, log)
        found[recipe.name] = product / "bin"
    return found


def _build(recipe: Recipe, product: Path, go: Path, log: Path) -> None:
    work = product.with_name(f".{recipe.name}.work")
    # What a killed build left; we hold the lock.
    shutil.rmtree(work, ignore_errors=True)
    programs, scratch = work / "bin", work / "tmp"
    programs.mkdir(parents=True)
    scratch.mkdir()
    env = {
        "CGO_ENABLED": "1" if recipe.cgo else "0",
        "GOBIN": str(programs),
        "GOFLAGS": "-buildvcs=false",
        "GOWORK": "off",
        # The machine's /tmp may be small, and others may clear it.
        "TMPDIR": str(scratch),
        "PATH": f"{go.parent}:{os.environ['PATH']}",
    }
    flags = ["-trimpath", "-ldflags", recipe.ldflags]
    flags += ["-tags", recipe.tags] if recipe.tags else []
    what = f"building {recipe.name}"
    if recipe.source is None:
        command: list[str | Path] = [go, "install", *flags, *recipe.install]
        run_logged(what, command, log, env=env, cwd=work, advice=BUILD_ADVICE)
    else:
        source = _lay_out_source(recipe, work / "source", go, log)
        command = [go, "build", *flags, "-o", programs / recipe.name, "."]
        run_logged(what, command, log, env=env, cwd=source, advice=BUILD_ADVICE)
        if not recipe.module_files:
            # To be pinned by whoever likes the result.
            for name in ("go.mod", "go.sum"):
                shutil.copy(source / name, work / name)
        shutil.rmtree(source)
    shutil.rmtree(scratch)
    work.rename(product)


def _lay_out_source(recipe: Recipe, target: Path, go: Path, log: Path) -> Path:
    assert recipe.source is not None
    target.mkdir()
    for path in (recipe.source / "main.go", *recipe.module_files):
        shutil.copy(path, target / path.name)
    if not recipe.module_files:
        (target / "go.mod").write_text(generate_kubernetes_module(recipe.kubernetes, go, target))
        run_logged(
            f"resolving the modules of Kubernetes {recipe.kubernetes}",
            [go, "mod", "tidy"],
            log,
            cwd=target,
            advice="is it a released version that the Go module proxy has? 1.37.2 is known to work",
        )
    return target


def generate_kubernetes_module(version: str, go: Path, cwd: Path) -> str:
    """The go.mod that builds main.go against a Kubernetes version.

    Kubernetes' own go.mod takes its staging modules from its repository; whoever imports it has
    to say that the published ones of the same release are meant.
    """
    download: list[str | Path] = ["env", "-C", cwd, go, "mod", "download", "-json"]
    described = json.loads(read_output([*download, f"k8s.io/kubernetes@v{version}"]))
    return render_kubernetes_module(version, Path(described["GoMod"]).read_text())


def render_kubernetes_module(version: str, upstream: str) -> str:
    """The text of our go.mod, made from the one that Kubernetes was released with."""
    language = re.search(r"^go (\S+)", upstream, re.MULTILINE)
    staging = re.findall(r"^\s*(k8s\.io/\S+) => \./staging/", upstream, re.MULTILINE)
    published = "v0." + version.split(".", 1)[1]
    lines = [
        "module stayer.local/kubernetes",
        "",
        f"go {language.group(1) if language else '1.26'}",
        "",
        f"require k8s.io/kubernetes v{version}",
        "",
        "replace (",
        *(f"\t{module} => {module} {published}" for module in staging),
        ")",
    ]
    return "\n".join(lines) + "\n"


def link_programs(places: Places, products: dict[str, Path]) -> None:
    """Make the state's `bin` hold exactly the programs of these products."""
    places.bin.mkdir(parents=True, exist_ok=True)
    wanted = {path.name: path for bin_dir in products.values() for path in bin_dir.iterdir()}
    multicall = wanted.pop(KUBERNETES)
    wanted |= dict.fromkeys(KUBERNETES_PROGRAMS, multicall)
    for name, target in wanted.items():
        link = places.bin / name
        if link.is_symlink() and link.readlink() == target:
            continue
        draft = places.bin / f".{name}.new"
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.rename(link)
