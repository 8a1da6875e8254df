"""The frame of a trial pod: identity, isolation, placement."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stayer_evaluator.records.outcomes import Role
from stayer_operator.api import names
from stayer_operator.core.pods.containers import Container, copy_runner_container
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.pods.volumes import Volume
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec

# Autoscalers move pods away to save nodes; a trial would survive it and lose time for nothing.
DO_NOT_DISRUPT = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

_HOST = re.compile(r"^https?://(\[[^\]]+\]|[^:/]+)")


def build_pod(
    settings: PodSettings,
    identity: TrialIdentity,
    spec: TrialSpec,
    role: Role,
    incarnation: int,
    *,
    volumes: Sequence[Volume],
    init_containers: Sequence[Container],
    task: Container,
) -> dict[str, Any]:
    """A whole pod manifest from its containers and volumes."""
    copy = [copy_runner_container(settings)] if settings.runner_delivery == "init-copy" else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": identity.namespace,
            "name": names.pod_name(identity.name, role, incarnation),
            "labels": names.pod_labels(
                run=spec.run,
                run_uid=spec.run_uid,
                trial=identity.name,
                trial_uid=identity.uid,
                role=role,
                kind=spec.kind,
            ),
            "annotations": DO_NOT_DISRUPT,
            "ownerReferences": [
                names.owner_reference(names.TRIAL_KIND, identity.name, identity.uid)
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": settings.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _grace(settings, role),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            **_user_namespace(settings, spec),
            **_network(settings, spec),
            **_placement(settings, spec, spec.template(role)),
            "volumes": list(volumes),
            "initContainers": [*copy, *init_containers],
            "containers": [task],
        },
    }


def _grace(settings: PodSettings, role: Role) -> int:
    return settings.grace_seconds if role is Role.AGENT else settings.adjudicator_grace_seconds


def _user_namespace(settings: PodSettings, spec: TrialSpec) -> dict[str, Any]:
    wanted = spec.user_namespaces == "required" or (
        spec.user_namespaces == "preferred" and settings.user_namespaces_found
    )
    return {"hostUsers": False} if wanted else {}


def _network(settings: PodSettings, spec: TrialSpec) -> dict[str, Any]:
    """No DNS unless the network is open; our Services are known by address all the same."""
    aliases: dict[str, set[str]] = {}
    services = (
        (settings.relay_ip, settings.relay_url),
        (settings.progress_ip, settings.progress_url),
    )
    for address, url in services:
        host = _HOST.match(url)
        if address and host and host[1] != address:
            aliases.setdefault(address, set()).add(host[1])
    network: dict[str, Any] = {
        "dnsPolicy": "ClusterFirst" if spec.network == "open" else "None",
        "hostAliases": [
            {"ip": address, "hostnames": sorted(hosts)} for address, hosts in aliases.items()
        ],
    }
    if spec.network != "open":
        # At least one nameserver is obligatory; nothing listens at this one.
        network["dnsConfig"] = {"nameservers": ["127.0.0.1"]}
    return network


def _placement(
    settings: PodSettings, spec: TrialSpec, template: Mapping[str, Any]
) -> dict[str, Any]:
    placement: dict[str, Any] = {
        name: template[name]
        for name in ("nodeSelector", "tolerations", "runtimeClassName")
        if template.get(name)
    }
    if spec.pull_secrets:
        placement["imagePullSecrets"] = [{"name": name} for name in spec.pull_secrets]
    if settings.priority_class:
        placement["priorityClassName"] = settings.priority_class
    return placement
