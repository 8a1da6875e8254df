"""Debian packages: those the machine must have, and those unpacked into the cache."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from local_cluster.commands import read_output, run_logged, try_command
from local_cluster.console import Console
from local_cluster.errors import LocalClusterError
from local_cluster.locks import exclusive
from local_cluster.settings import Places

# Programs that the cluster calls; they come and stay as the machine's own packages.
RUN_PACKAGES = (
    "conntrack",
    "ipset",
    "iproute2",
    "iptables",
    "kmod",
    "nftables",
    "openssl",
    "procps",
    "util-linux",
)
BUILD_PACKAGES = (
    "buildah",
    "ca-certificates",
    "debootstrap",
    "gcc",
    "libc6-dev",
    "libseccomp-dev",
    "pkg-config",
)
# Unpacked only, never installed: on a machine with an init system the packages of servers
# would start them.
CNI_PACKAGE = "containernetworking-plugins"
REGISTRY_PACKAGE = "docker-registry"
PROMETHEUS_PACKAGE = "prometheus"

STATUS_FORMAT = "${Package} ${db:Status-Status}\n"
INDEX_FORMAT = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"


@dataclass(frozen=True)
class Source:
    """One suite of one mirror, as the machine's apt knows it."""

    uri: str
    suite: str


def install_packages(names: Sequence[str], places: Places, console: Console) -> None:
    """Install what the machine lacks, and say so."""
    listing = try_command(["dpkg-query", "-W", "-f", STATUS_FORMAT, *names]).stdout
    missing = find_missing(names, listing)
    if not missing:
        return
    log = places.build_logs / "step-apt.log"
    advice = "check the machine's apt sources, then run the same command again"
    with console.step(f"installing Debian packages: {' '.join(missing)}", 20, log):
        _update_index(log)
        run_logged(
            "installing Debian packages",
            ["apt-get", "install", "-y", "--no-install-recommends", *missing],
            log,
            env={"DEBIAN_FRONTEND": "noninteractive"},
            advice=advice,
        )


def _update_index(log: Path) -> None:
    # One broken source of the machine (often a third party's) need not matter: the install or
    # download that follows tells.
    try_command(["sh", "-c", f"apt-get update >>'{log}' 2>&1"])


def find_missing(names: Sequence[str], listing: str) -> list[str]:
    """Those of the names that the listing does not call installed."""
    return [name for name in names if f"{name} installed" not in listing.splitlines()]


def package_tree(name: str, edition: int, places: Places) -> Path:
    """Where a package is or will be unpacked."""
    return places.cache / "debs" / f"{name}-{edition}"


def unpack_package(name: str, edition: int, places: Places, console: Console) -> Path:
    """The tree of a package's files in the cache, without installing it."""
    tree = package_tree(name, edition, places)
    if tree.exists():
        return tree
    log = places.build_logs / f"step-deb-{name}.log"
    with exclusive(tree.with_name(f".{name}.lock"), console.say):
        if tree.exists():
            return tree
        with console.step(f"fetching Debian's {name}", 10, log):
            work = tree.with_name(f".{name}.work")
            shutil.rmtree(work, ignore_errors=True)
            (work / "tree").mkdir(parents=True)
            what = f"fetching Debian's {name}"
            if "Candidate" not in try_command(["apt-cache", "policy", name]).stdout:
                _update_index(log)
            try:
                run_logged(what, ["apt-get", "download", name], log, cwd=work)
            except LocalClusterError:
                # The index may be older than the mirror.
                _update_index(log)
                run_logged(what, ["apt-get", "download", name], log, cwd=work)
            [archive] = work.glob("*.deb")
            run_logged(what, ["dpkg-deb", "-x", archive, work / "tree"], log)
            (work / "tree").rename(tree)
            shutil.rmtree(work)
    return tree


def find_sources(suite: str) -> tuple[Source, ...]:
    """Debian's own suites of a release (base, updates, security) from the machine's apt."""
    command = ["apt-get", "indextargets", "--format", INDEX_FORMAT, "Created-By: Packages"]
    return select_sources(read_output(command), suite)


def select_sources(listing: str, suite: str) -> tuple[Source, ...]:
    """Pick Debian's main component of `suite`, base suite first; raise if there is none."""
    chosen: list[Source] = []
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) != 4:
            continue
        uri, found, component, origin = fields
        of_release = found == suite or found.startswith(f"{suite}-")
        source = Source(uri.rstrip("/"), found)
        if of_release and (component, origin) == ("main", "Debian") and source not in chosen:
            chosen.append(source)
    chosen.sort(key=lambda source: source.suite)
    if not chosen or chosen[0].suite != suite:
        raise LocalClusterError(
            f"the machine's apt knows no Debian {suite}",
            advice=f"run apt-get update; the base images are made from Debian {suite}",
        )
    return tuple(chosen)
