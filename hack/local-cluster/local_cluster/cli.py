"""The commands of `cluster`; each function is one, and holds no logic of its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from local_cluster.console import Console
from local_cluster.errors import LocalClusterError
from local_cluster.locks import exclusive
from local_cluster.pins import load_pins, parse_kubernetes_version
from local_cluster.settings import DEFAULT_REGISTRY_PORT, SOURCE, Choices, find_places
from local_cluster.up import bring_up


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser("cluster")
    parser.add_argument("command")
    options = parser.parse_args(arguments)
    console = Console()
    places = find_places(None, os.environ)
    pins = load_pins(SOURCE / "versions.toml")
    choices = Choices(kubernetes_version=pins.kubernetes_version, registry_port=5000)
    try:
        places.state.mkdir(parents=True, exist_ok=True)
        with exclusive(places.state / ".lock", console.say):
            bring_up(places, choices, pins, console)
    except LocalClusterError as error:
        print(error.report(), file=sys.stderr)
        return 1
    print((places.state / "env").read_text())
    return 0
