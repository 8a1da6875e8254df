"""Brings the cluster up, from whatever state it is in."""

from __future__ import annotations

from collections.abc import Mapping

from local_cluster.build import Builder, Products, clear_leftover_build
from local_cluster.certificates import ensure_certificates
from local_cluster.cgroups import ensure_cgroups
from local_cluster.components import Component, Supervisor, make_components
from local_cluster.console import Console
from local_cluster.infra import (
    apply_infra,
    await_infra,
    describe_environment,
    ensure_s3_directories,
    render_environment,
)
from local_cluster.kubectl import Kubectl
from local_cluster.network import check_machine, check_ports, ensure_network
from local_cluster.pins import Pins
from local_cluster.probes import wait_for
from local_cluster.products import link_programs
from local_cluster.render import (
    render_audit_policy,
    render_cni,
    render_containerd,
    render_kubelet,
)
from local_cluster.settings import NODE_NAME, Choices, Places, write_file

# The rest needs the API server, and the kubelet ends when containerd does not listen yet.
ONE_BY_ONE = ("etcd", "apiserver", "containerd")


def bring_up(places: Places, choices: Choices, pins: Pins, console: Console) -> None:
    """Build what is missing, start what does not run, and wait until all of it serves."""
    clear_leftover_build(places, console)
    builder = Builder(places, choices, pins, console)
    builder.prepare_machine()
    check_machine(places)
    components = make_components(places, choices, pins)
    supervisor = Supervisor(places, components)
    idle = [component for component in components if not supervisor.is_running(component)]
    check_ports([port for component in idle for port in component.ports])
    places.save_choices(choices)
    builder.start_registry()
    products = builder.build()
    link_programs(places, dict(products.programs))
    _prepare_node(places, products)
    kubectl = Kubectl.of_local_cluster(places)
    _start(supervisor, components, places, kubectl, products.images, console)
    variables = describe_environment(places, choices.registry_port)
    write_file(places.state / "env", render_environment(variables))
    products.base_images.result()


def _prepare_node(places: Places, products: Products) -> None:
    ensure_network(places)
    ensure_cgroups(places.unique_name)
    ensure_certificates(places)
    ensure_s3_directories(places)
    places.audit_log.parent.mkdir(mode=0o700, exist_ok=True)
    places.run.mkdir(mode=0o711, exist_ok=True)
    config = places.config
    containerd = render_containerd(places, products.cni_plugins, products.images["pause"])
    write_file(config / "containerd.toml", containerd)
    write_file(config / "cni" / "10-stayer.conflist", render_cni(places))
    write_file(config / "kubelet.json", render_kubelet(places))
    write_file(config / "audit-policy.json", render_audit_policy())


def _start(
    supervisor: Supervisor,
    components: tuple[Component, ...],
    places: Places,
    kubectl: Kubectl,
    images: Mapping[str, str],
    console: Console,
) -> None:
    with console.step("starting the cluster", 20):
        for component in components:
            if component.name == "kube-router":
                # It ends when there is no such node yet.
                log = supervisor.log("kubelet")
                wait_for("the kubelet did not register", lambda: node_exists(kubectl), 60, log=log)
            supervisor.launch(component)
            if component.name in ONE_BY_ONE:
                supervisor.wait(component)
            if component.name == "apiserver":
                apply_infra(places, kubectl, images)
        for component in components:
            supervisor.wait(component)
        wait_for(
            "the node did not become Ready",
            lambda: is_node_ready(kubectl),
            60,
            log=supervisor.log("kubelet"),
        )
    with console.step("waiting for DNS, S3 and Prometheus", 10):
        await_infra(places, kubectl)


def node_exists(kubectl: Kubectl) -> bool:
    """Whether the kubelet has registered its node."""
    return kubectl.succeeds("get", "node", NODE_NAME)


def is_node_ready(kubectl: Kubectl) -> bool:
    """Whether the node's own condition says that it takes pods."""
    query = "{.items[*].status.conditions[?(@.type=='Ready')].status}"
    selector = f"--field-selector=metadata.name={NODE_NAME}"
    return kubectl.read("get", "nodes", selector, "-o", f"jsonpath={query}") == "True"
