"""NetworkPolicies of a run: one for each role, none per trial (design.md §4 Network).

Both roles reach the relay and the progress endpoint, nothing else; `open` gives agents DNS and
public addresses. Nothing may come in: the kubelet's probes are from the node, which a policy does
not stop.
"""

from collections.abc import Mapping
from typing import Any

from stayer_evaluator.records.outcomes import Role
from stayer_operator.api import names
from stayer_operator.core.plan import CreateNetworkPolicy
from stayer_operator.core.run.identity import RunIdentity
from stayer_operator.core.run.settings import OpenNetwork, RunSettings

_Rule = dict[str, Any]


def network_policies(
    run: RunIdentity, network: str, settings: RunSettings
) -> tuple[CreateNetworkPolicy, ...]:
    """Both policies of a run. Additive by nature: a pod that no policy selects is not isolated, so
    they exist before the first Trial.
    """
    return tuple(
        CreateNetworkPolicy(manifest=_policy(run, role, _egress(role, network, settings)))
        for role in Role
    )


def _policy(run: RunIdentity, role: Role, egress: list[_Rule]) -> Mapping[str, Any]:
    component = names.ROLE_LABELS[role]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": f"{run.name}-{component}-{run.uid[:8]}",
            "namespace": run.namespace,
            "labels": names.run_labels(run.name, run.uid, names.COMPONENT_NETWORK),
            "ownerReferences": [names.owner_reference(names.RUN_KIND, run.name, run.uid)],
        },
        "spec": {
            "podSelector": {
                "matchLabels": {names.LABEL_RUN_UID: run.uid, names.LABEL_ROLE: component}
            },
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": egress,
        },
    }


def _egress(role: Role, network: str, settings: RunSettings) -> list[_Rule]:
    rules = [
        _service(settings, names.COMPONENT_RELAY, settings.relay_port),
        _service(settings, names.COMPONENT_OPERATOR, settings.progress_port),
    ]
    if role is Role.AGENT and network == "open":
        rules += [_dns(settings.open_network), _internet(settings.open_network)]
    return rules


def _service(settings: RunSettings, component: str, port: int) -> _Rule:
    """Pods of the chart, by label: policies see addresses after a Service was resolved."""
    peer = {
        "namespaceSelector": {
            "matchLabels": {names.LABEL_NAMESPACE_NAME: settings.operator_namespace}
        },
        "podSelector": {
            "matchLabels": {names.LABEL_APP: names.APP, names.LABEL_COMPONENT: component}
        },
    }
    return {"to": [peer], "ports": [{"protocol": "TCP", "port": port}]}


def _dns(network: OpenNetwork) -> _Rule:
    peer = {
        "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: network.dns_namespace}},
        "podSelector": {"matchLabels": dict(network.dns_pod_labels)},
    }
    return {
        "to": [peer],
        "ports": [{"protocol": proto, "port": network.dns_port} for proto in ("UDP", "TCP")],
    }


def _internet(network: OpenNetwork) -> _Rule:
    """Public IPv4 only. IPv6 stays closed: what a cluster uses inside cannot be told apart."""
    return {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": list(network.closed_ranges)}}]}
