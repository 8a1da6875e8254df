"""The commands of `cluster`: reads the command line and hands over."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from local_cluster.build import build_only
from local_cluster.components import Supervisor, make_components
from local_cluster.console import Console
from local_cluster.down import take_down
from local_cluster.errors import NOT_UP, NOT_UP_ADVICE, LocalClusterError
from local_cluster.external import VARIABLE, check_external, describe_external, find_external
from local_cluster.infra import render_environment
from local_cluster.kubectl import Kubectl
from local_cluster.locks import exclusive
from local_cluster.operate import DEFAULT_LINES, Operator, replace_process
from local_cluster.pins import Pins, load_pins, parse_kubernetes_version
from local_cluster.settings import DEFAULT_REGISTRY_PORT, SOURCE, Choices, find_places
from local_cluster.up import bring_up

NOT_WELL = 3
SYSTEM_PROGRAMS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
INTERRUPTED = 130
# Commands that leave the user's own cluster alone, and what they say then.
OURS_ONLY = ("restart", "stop", "start", "logs")


class Commands:
    """One method for each command; each returns the exit code."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._console = Console()
        self._places = find_places(options.state, os.environ)
        self._pins: Pins = load_pins(SOURCE / "versions.toml")
        self._external: Kubectl | None = find_external(os.environ, self._places)
        if self._external is not None and options.command in OURS_ONLY:
            raise LocalClusterError(
                f"`{options.command}` is for the local cluster only",
                advice=f"unset {VARIABLE}, or use that cluster's own tools",
            )

    def up(self) -> int:
        """Bring the cluster up, or check the user's own."""
        if self._external is not None:
            self._console.say(check_external(self._external))
            return 0
        require_root()
        with self._locked():
            bring_up(self._places, self._choose(), self._pins, self._console)
        self._console.say(f"the cluster is up; its addresses: cluster env, or {self._state_env()}")
        return 0

    def down(self) -> int:
        """Take the local cluster down; never the user's own."""
        if self._external is not None:
            self._console.say(f"{VARIABLE} is set: that cluster is not ours to take down")
            return 0
        require_root()
        if not self._places.state.exists():
            self._console.say(f"no cluster in {self._places.state}: nothing to do")
            return 0
        with self._locked():
            choices = self._places.load_choices() or self._choose()
            components = make_components(self._places, choices, self._pins)
            supervisor = Supervisor(self._places, components)
            take_down(self._places, supervisor, self._console, keep=self._options.keep)
        return 0

    def status(self) -> int:
        """Say how every part is; the exit code tells whether all are well."""
        if self._external is not None:
            print(check_external(self._external))
            return 0
        choices = self._existing()
        parts = list(Operator(self._places, choices, self._pins).survey())
        print(f"Kubernetes {choices.kubernetes_version} in {self._places.state}")
        for part in parts:
            print(f"  {part.name:<20} {part.state}")
        return 0 if all(part.is_well for part in parts) else NOT_WELL

    def env(self) -> int:
        """Print what users of the cluster need to know."""
        if self._external is not None:
            variables = describe_external(self._external, os.environ)
            sys.stdout.write(render_environment(variables))
            return 0
        self._existing()
        if not self._state_env().exists():
            raise LocalClusterError(NOT_UP, advice=NOT_UP_ADVICE)
        sys.stdout.write(self._state_env().read_text())
        return 0

    def build(self) -> int:
        """Build programs and images into the cache."""
        require_root()
        extra = self._options.extra
        build_only(self._places, self._choose(), self._pins, self._console, extra)
        return 0

    def stop(self) -> int:
        """End one part."""
        with self._operator() as operator:
            operator.stop(self._options.part, kill=self._options.kill)
        return 0

    def start(self) -> int:
        """Start one part."""
        with self._operator() as operator:
            operator.start(self._options.part)
        return 0

    def restart(self) -> int:
        """End one part, start it again, and wait until it is healthy."""
        with self._operator() as operator:
            operator.stop(self._options.part, kill=self._options.kill)
            operator.start(self._options.part)
        return 0

    def logs(self) -> int:
        """Show one part's log."""
        operator = Operator(self._places, self._existing(), self._pins)
        options = self._options
        replace_process(operator.log_command(options.part, options.lines, follow=options.follow))
        return 0

    def _choose(self) -> Choices:
        """The choices of the command line, which must not contradict those of the cluster."""
        existing = self._places.load_choices()
        default = existing or Choices(
            kubernetes_version=self._pins.kubernetes_version,
            registry_port=DEFAULT_REGISTRY_PORT,
        )
        version = getattr(self._options, "kubernetes_version", None)
        port = getattr(self._options, "registry_port", None)
        chosen = Choices(
            kubernetes_version=parse_kubernetes_version(version or default.kubernetes_version),
            registry_port=port or default.registry_port,
        )
        if existing and chosen != existing and self._options.command == "up":
            raise LocalClusterError(
                f"the cluster in {self._places.state} was made with Kubernetes "
                f"{existing.kubernetes_version} and registry port {existing.registry_port}",
                advice="run `cluster down` first, or use another --state DIR",
            )
        return chosen

    def _existing(self) -> Choices:
        choices = self._places.load_choices()
        if choices is None:
            raise LocalClusterError(
                f"no cluster in {self._places.state}", advice="run `cluster up`"
            )
        return choices

    def _state_env(self) -> Path:
        return self._places.state / "env"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with exclusive(self._places.state / ".lock", self._console.say):
            yield

    @contextmanager
    def _operator(self) -> Iterator[Operator]:
        require_root()
        choices = self._existing()
        with self._locked():
            yield Operator(self._places, choices, self._pins)


def require_root() -> None:
    """Raise unless we may make mounts, networks and control groups."""
    if os.geteuid() != 0:
        raise LocalClusterError(
            "this takes root: it makes mounts, networks and control groups",
            advice="run it with sudo, or set STAYER_KUBECONFIG to use a cluster that you have",
        )


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        "cluster", description="One real single-node Kubernetes on a bare Debian 12 machine."
    )
    parser.add_argument("--state", metavar="DIR", help="where the cluster is kept")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring it up; does nothing if it is up")
    build = commands.add_parser("build", help="only build what `up` needs, into the cache")
    for command in (up, build):
        command.add_argument("--kubernetes-version", metavar="X.Y.Z")
        command.add_argument("--registry-port", type=int, metavar="PORT")
    build.add_argument(
        "--with", dest="extra", action="append", default=[], metavar="NAME", help="kwok, for one"
    )
    down = commands.add_parser("down", help="end it and remove everything that it made")
    down.add_argument("--keep", action="store_true", help="keep its objects and S3 data")
    commands.add_parser("status", help=f"how each part is; exit code {NOT_WELL} if one is not well")
    commands.add_parser("env", help="addresses and credentials as KEY=VALUE lines")
    for name in ("restart", "stop"):
        command = commands.add_parser(name, help=f"{name} one part: a process, dns, s3, prometheus")
        command.add_argument("part")
        command.add_argument("--kill", action="store_true", help="without asking it to end")
    commands.add_parser("start", help="start one part").add_argument("part")
    logs = commands.add_parser("logs", help="show the log of one part")
    logs.add_argument("part")
    logs.add_argument("-n", "--lines", type=int, default=DEFAULT_LINES)
    logs.add_argument("-f", "--follow", action="store_true")
    return parser


def with_system_programs(path: str) -> str:
    """PATH with the folders of ip, modprobe and nft: `su` without `-` leaves them out."""
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join([*parts, *(p for p in SYSTEM_PROGRAMS if p not in parts)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = make_parser().parse_args(arguments)
    os.environ["PATH"] = with_system_programs(os.environ.get("PATH", ""))
    try:
        command: Callable[[], int] = getattr(Commands(options), options.command)
        return command()
    except LocalClusterError as error:
        print(error.report(), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"local cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where this one ended", file=sys.stderr)
        return INTERRUPTED
