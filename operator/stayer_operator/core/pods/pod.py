"""The frame of a trial pod: identity, isolation, placement."""

import re
from collections.abc import Sequence
from typing import Any

from stayer_evaluator.records.outcomes import Role
from stayer_operator.api import names
from stayer_operator.core.pods.containers import (
    Container,
    copy_runner_container,
    own_container,
    own_environment,
)
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.pods.traits import Traits
from stayer_operator.core.pods.volumes import Volume
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec

# Autoscalers move pods away to save nodes; a trial would survive it and lose time for nothing.
DO_NOT_DISRUPT = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

FRAMES = 16  # of shared specs that are kept for each role; a run has one, 5 kB

_HOST = re.compile(r"^https?://(\[[^\]]+\]|[^:/]+)")


def shared_spec(
    settings: PodSettings,
    traits: Traits,
    *,
    grace_seconds: int,
    volumes: Sequence[Volume],
    init_containers: Sequence[Container],
    task: Container,
) -> dict[str, Any]:
    """The spec of all pods that have these traits, without what is each trial's own."""
    copy = [copy_runner_container(settings)] if settings.runner_delivery == "init-copy" else []
    return {
        "restartPolicy": "Never",
        "serviceAccountName": settings.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **_user_namespace(settings, traits),
        **_network(settings, traits),
        **_placement(settings, traits),
        "volumes": list(volumes),
        "initContainers": [*copy, *init_containers],
        "containers": [task],
    }


def build_pod(
    shared: dict[str, Any], identity: TrialIdentity, spec: TrialSpec, role: Role, incarnation: int
) -> dict[str, Any]:
    """The manifest of one trial's pod from the spec that it shares with others."""
    told = own_environment(spec, identity.name, role, incarnation)
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
            **shared,
            "initContainers": [own_container(c, spec, told) for c in shared["initContainers"]],
            "containers": [own_container(c, spec, told) for c in shared["containers"]],
        },
    }


def _user_namespace(settings: PodSettings, traits: Traits) -> dict[str, Any]:
    wanted = traits.user_namespaces == "required" or (
        traits.user_namespaces == "preferred" and settings.user_namespaces_found
    )
    return {"hostUsers": False} if wanted else {}


def _network(settings: PodSettings, traits: Traits) -> dict[str, Any]:
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
        "dnsPolicy": "ClusterFirst" if traits.network == "open" else "None",
        "hostAliases": [
            {"ip": address, "hostnames": sorted(hosts)} for address, hosts in aliases.items()
        ],
    }
    if traits.network != "open":
        # At least one nameserver is obligatory; nothing listens at this one.
        network["dnsConfig"] = {"nameservers": ["127.0.0.1"]}
    return network


def _placement(settings: PodSettings, traits: Traits) -> dict[str, Any]:
    template = traits.read_template()
    placement: dict[str, Any] = {
        name: template[name]
        for name in ("nodeSelector", "tolerations", "runtimeClassName")
        if template.get(name)
    }
    if traits.pull_secrets:
        placement["imagePullSecrets"] = [{"name": name} for name in traits.pull_secrets]
    if settings.priority_class:
        placement["priorityClassName"] = settings.priority_class
    return placement
