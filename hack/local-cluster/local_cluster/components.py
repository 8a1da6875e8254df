"""The processes of the cluster: how each is started, asked and ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local_cluster import registry
from local_cluster.commands import SYSTEM_PATH
from local_cluster.debian import REGISTRY_PACKAGE, package_tree
from local_cluster.hashing import hash_content
from local_cluster.pins import Pins, supports_gangs
from local_cluster.probes import (
    Probe,
    accepts_connections,
    answers_http,
    answers_https,
    api_server_is_ready,
    wait_for,
)
from local_cluster.processes import ProcessTable
from local_cluster.settings import (
    NODE_ADDRESS,
    NODE_NAME,
    POD_NETWORK,
    SERVICE_NETWORK,
    Choices,
    Places,
)

ETCD = "http://127.0.0.1:2379"
GANG_GATE = "--feature-gates=GenericWorkload=true"
# The API server would go on for a minute with its open watches; requests are answered by then.
FAREWELL = 10.0
# There is only one; and a lost lease would end it, with nobody to start it again.
ALONE = "--leader-elect=false"
# Simulated nodes by the hundred would otherwise wait for the clients' default limits.
FAST_CLIENT = ("--kube-api-qps=300", "--kube-api-burst=600")


@dataclass(frozen=True, kw_only=True)
class Component:
    """One process.

    Attributes:
        program: what is run; links are followed when it is started.
        files: configuration that it reads at its start; a change restarts it.
        ports: what it listens on, as (address, port).
        patience: seconds that it has to become healthy.
        farewell: seconds that it has to end by itself.
    """

    name: str
    program: Path
    arguments: tuple[str, ...]
    probe: Probe
    files: tuple[Path, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()
    patience: float = 60
    farewell: float = FAREWELL
    aliases: tuple[str, ...] = ()

    def content(self) -> str:
        """A hash of everything that it is started with."""
        facts = {"program": os.path.realpath(self.program), "arguments": self.arguments}
        return hash_content(facts, self.files)


class Supervisor:
    """Starts, asks and ends the components of one state directory."""

    def __init__(self, places: Places, components: Sequence[Component]) -> None:
        self._places = places
        self._table = ProcessTable(places.state, places.processes)
        self._components = {component.name: component for component in components}
        for component in components:
            self._components |= dict.fromkeys(component.aliases, component)

    @property
    def table(self) -> ProcessTable:
        """The processes themselves."""
        return self._table

    def get(self, name: str) -> Component | None:
        """A component by its name or alias."""
        return self._components.get(name)

    def log(self, name: str) -> Path:
        """Where the process writes."""
        return self._places.logs / f"{name}.log"

    def is_running(self, component: Component) -> bool:
        """Whether its process lives."""
        return self._table.find(component.name) is not None

    def launch(self, component: Component) -> bool:
        """Start it unless it runs as it should; False if there was nothing to do.

        One that runs with other arguments or files is ended first.
        """
        content = component.content()
        record = self._table.find(component.name)
        if record is not None:
            if record.content == content:
                return False
            self._table.stop(component.name, component.farewell)
        command = [str(component.program), *component.arguments]
        log = self.log(component.name)
        self._table.start(component.name, command, content, log, self._environment())
        return True

    def wait(self, component: Component) -> None:
        """Wait until it is healthy."""
        wait_for(
            f"{component.name} did not become healthy",
            component.probe,
            component.patience,
            log=self.log(component.name),
            alive=lambda: self.is_running(component),
        )

    def stop(self, component: Component, *, kill: bool = False) -> bool:
        """End it and wait for its end."""
        return self._table.stop(component.name, component.farewell, kill=kill)

    def stop_by_name(self, name: str) -> bool:
        """End a process of ours whether or not its component is known to this command."""
        component = self.get(name)
        return self._table.stop(name, component.farewell if component else FAREWELL)

    def _environment(self) -> Mapping[str, str]:
        # Nothing of the caller's: a proxy setting, for one, must not reach the runtime.
        return {"PATH": f"{self._places.bin}:{SYSTEM_PATH}", "HOME": "/root", "LANG": "C.UTF-8"}


def make_components(places: Places, choices: Choices, pins: Pins) -> tuple[Component, ...]:
    """All processes in their start order."""
    return (
        make_registry(places, choices, pins),
        _etcd(places),
        _api_server(places, choices),
        _containerd(places),
        _controller_manager(places),
        _scheduler(places, choices),
        _kubelet(places),
        _proxy(places),
        _router(places),
    )


def make_registry(places: Places, choices: Choices, pins: Pins) -> Component:
    """The image registry: needed before there is a cluster, for the images that are built."""
    config = places.config / "registry.yml"
    tree = package_tree(REGISTRY_PACKAGE, pins.debian_edition, places)
    return Component(
        name="registry",
        program=tree / "usr/bin/docker-registry",
        arguments=("serve", str(config)),
        probe=lambda: registry.is_answering(choices.registry_port),
        files=(config,),
        ports=(("127.0.0.1", choices.registry_port),),
    )


def _etcd(places: Places) -> Component:
    return Component(
        name="etcd",
        program=places.bin / "etcd",
        arguments=(
            f"--data-dir={places.state}/etcd",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            # A cluster to be thrown away need not survive a power cut.
            "--unsafe-no-fsync",
        ),
        probe=lambda: answers_http(2379, "/health"),
        ports=(("127.0.0.1", 2379), ("127.0.0.1", 2380)),
    )


def _api_server(places: Places, choices: Choices) -> Component:
    pki = places.certificates
    gangs = (GANG_GATE, "--runtime-config=scheduling.k8s.io/v1beta1=true")
    policy = places.config / "audit-policy.json"
    return Component(
        name="apiserver",
        aliases=("kube-apiserver",),
        program=places.bin / "kube-apiserver",
        arguments=(
            f"--etcd-servers={ETCD}",
            f"--bind-address={NODE_ADDRESS}",
            f"--advertise-address={NODE_ADDRESS}",
            "--secure-port=6443",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
            f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
            # Else logs and exec look up the node's name, which no DNS knows.
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={places.audit_log}",
            "--audit-log-maxsize=2000",
            "--audit-log-maxbackup=1",
            *(gangs if supports_gangs(choices.kubernetes_version) else ()),
        ),
        probe=lambda: api_server_is_ready(places),
        files=(policy, pki / "apiserver.crt"),
        ports=((NODE_ADDRESS, 6443),),
        patience=120,
    )


def _containerd(places: Places) -> Component:
    config = places.config / "containerd.toml"
    return Component(
        name="containerd",
        program=places.bin / "containerd",
        arguments=("--config", str(config)),
        probe=lambda: accepts_connections(places.containerd_socket),
        files=(config,),
    )


def _controller_manager(places: Places) -> Component:
    pki = places.certificates
    return Component(
        name="controller-manager",
        aliases=("kube-controller-manager",),
        program=places.bin / "kube-controller-manager",
        arguments=(
            f"--kubeconfig={pki}/controller-manager.kubeconfig",
            "--bind-address=127.0.0.1",
            ALONE,
            f"--service-account-private-key-file={pki}/sa.key",
            f"--root-ca-file={pki}/ca.crt",
            "--use-service-account-credentials=true",
            f"--cluster-cidr={POD_NETWORK}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            f"--flex-volume-plugin-dir={places.state}/kubelet-plugins",
            "--allocate-node-cidrs=true",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            *FAST_CLIENT,
        ),
        probe=lambda: answers_https(10257, "/healthz"),
        ports=(("127.0.0.1", 10257),),
    )


def _scheduler(places: Places, choices: Choices) -> Component:
    return Component(
        name="scheduler",
        aliases=("kube-scheduler",),
        program=places.bin / "kube-scheduler",
        arguments=(
            f"--kubeconfig={places.certificates}/scheduler.kubeconfig",
            "--bind-address=127.0.0.1",
            ALONE,
            *FAST_CLIENT,
            *((GANG_GATE,) if supports_gangs(choices.kubernetes_version) else ()),
        ),
        probe=lambda: answers_https(10259, "/healthz"),
        ports=(("127.0.0.1", 10259),),
    )


def _kubelet(places: Places) -> Component:
    config = places.config / "kubelet.json"
    return Component(
        name="kubelet",
        program=places.bin / "kubelet",
        arguments=(
            f"--config={config}",
            f"--kubeconfig={places.certificates}/kubelet.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={places.state}/kubelet",
            f"--cert-dir={places.state}/kubelet/pki",
        ),
        probe=lambda: answers_http(10248, "/healthz"),
        files=(config,),
        ports=((NODE_ADDRESS, 10250), ("127.0.0.1", 10248)),
    )


def _proxy(places: Places) -> Component:
    return Component(
        name="kube-proxy",
        program=places.bin / "kube-proxy",
        arguments=(
            f"--kubeconfig={places.certificates}/proxy.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            "--proxy-mode=nftables",
            f"--cluster-cidr={POD_NETWORK}",
            "--healthz-bind-address=127.0.0.1:10256",
            "--metrics-bind-address=127.0.0.1:10249",
            # Zero leaves the machine's own limits as they are.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
        ),
        probe=lambda: answers_http(10256, "/healthz"),
        ports=(("127.0.0.1", 10256), ("127.0.0.1", 10249)),
    )


def _router(places: Places) -> Component:
    return Component(
        name="kube-router",
        aliases=("network-policy",),
        program=places.bin / "kube-router",
        arguments=(
            f"--kubeconfig={places.certificates}/router.kubeconfig",
            f"--hostname-override={NODE_NAME}",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--health-port=20244",
            "--metrics-port=0",
        ),
        probe=lambda: answers_http(20244, "/healthz"),
        ports=(("0.0.0.0", 20244),),  # noqa: S104
    )
