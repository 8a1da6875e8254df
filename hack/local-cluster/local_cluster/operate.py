"""Single parts of a running cluster: stop, start, restart, and how each is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local_cluster.components import Component, Supervisor, make_components
from local_cluster.errors import LocalClusterError
from local_cluster.infra import SERVICES, start_deployment, stop_deployment
from local_cluster.kubectl import Kubectl
from local_cluster.pins import Pins
from local_cluster.probes import wait_for
from local_cluster.settings import INFRA_NAMESPACE, Choices, Places
from local_cluster.up import is_node_ready

DEFAULT_LINES = 100


@dataclass(frozen=True)
class Part:
    """How one part of the cluster is: a process or a pod of its own."""

    name: str
    state: str
    is_well: bool


class Operator:
    """Handles the parts of one cluster by name."""

    def __init__(self, places: Places, choices: Choices, pins: Pins) -> None:
        self._components = make_components(places, choices, pins)
        self._kubectl = Kubectl.of_local_cluster(places)
        self.supervisor = Supervisor(places, self._components)

    def stop(self, name: str, *, kill: bool = False) -> None:
        """End a part and wait until it is gone; one that is not running is left so."""
        component = self._find(name)
        if component is None:
            stop_deployment(self._kubectl, name)
        else:
            self.supervisor.stop(component, kill=kill)

    def start(self, name: str) -> None:
        """Start a part and wait until it is healthy; one that runs is left alone."""
        component = self._find(name)
        if component is None:
            start_deployment(self._kubectl, name)
            return
        self.supervisor.launch(component)
        self.supervisor.wait(component)
        if component.name == "kubelet":
            ready = lambda: is_node_ready(self._kubectl)  # noqa: E731
            wait_for("the node did not become Ready", ready, 60)

    def log_command(self, name: str, lines: int, *, follow: bool) -> list[str]:
        """The program that shows a part's log."""
        component = self._find(name)
        if component is None:
            return self._kubectl.show_logs(INFRA_NAMESPACE, name, lines, follow=follow)
        path = self.supervisor.log(component.name)
        if not path.exists():
            raise LocalClusterError(f"{name} has no log yet", advice="run `cluster up`")
        return ["tail", f"--lines={lines}", *(["--follow=name"] if follow else []), str(path)]

    def survey(self) -> Iterator[Part]:
        """How every part is, in the order in which they were started."""
        for component in self._components:
            record = self.supervisor.table.find(component.name)
            if record is None:
                yield Part(component.name, "not running", False)
            else:
                is_well = component.probe()
                word = "healthy" if is_well else "NOT HEALTHY"
                yield Part(component.name, f"{word}, pid {record.identity.pid}", is_well)
        for name in SERVICES:
            ready = self._kubectl.count_ready(INFRA_NAMESPACE, name)
            yield Part(name, "ready" if ready else "NOT READY", ready > 0)
        is_ready = self._kubectl.is_reachable() and is_node_ready(self._kubectl)
        yield Part("node", "Ready" if is_ready else "NOT READY", is_ready)

    def _find(self, name: str) -> Component | None:
        component = self.supervisor.get(name)
        if component is None and name not in SERVICES:
            names = [component.name for component in self._components]
            raise LocalClusterError(
                f"the cluster has no part called {name!r}",
                advice=f"name one of: {', '.join([*names, *SERVICES])}",
            )
        return component


def replace_process(command: list[str]) -> None:
    """Become another program; does not return."""
    program = Path(command[0])
    os.execvp(program, command)  # noqa: S606
