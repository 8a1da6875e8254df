"""What the operator's installation decides for every run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stayer_evaluator.harnesses.catalog import harnesses
from stayer_evaluator.records import places


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessTraits:
    """What a run's spec must know of a harness.

    gold: who may read the task's gold patches: `always`, `never`, or `by-script` (only where the
    script applies a unit's patch).
    """

    script: Literal["required", "refused"] = "refused"
    gold: Literal["always", "never", "by-script"] = "never"


def harness_traits() -> Mapping[str, HarnessTraits]:
    """Traits of every harness of this version, by name, from their descriptions: package data that
    is read once and never changes, so as good as a constant.
    """
    return {
        name: HarnessTraits(script=harness.script, gold=harness.gold)
        for name, harness in harnesses().items()
    }


# What `network: open` still keeps away: link-local and metadata addresses, private networks
# (RFC 1918, RFC 6598) with every pod, Service and node of usual clusters, loopback.
CLOSED_RANGES = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)


def kube_dns() -> Mapping[str, str]:
    """Labels that nearly every cluster's DNS pods bear."""
    return {"k8s-app": "kube-dns"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNetwork:
    """What `network: open` gives the agents of a run."""

    dns_namespace: str = "kube-system"
    dns_pod_labels: Mapping[str, str] = field(default_factory=kube_dns)
    dns_port: int = 53  # of the pods, not of their Service
    closed_ranges: tuple[str, ...] = CLOSED_RANGES  # an installation may add to them


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Frozen facts of the installation, passed in with every view."""

    operator_namespace: str = "stayer"
    harnesses: Mapping[str, HarnessTraits] = field(default_factory=harness_traits)
    relay_port: int = places.RELAY_PORT
    progress_port: int = places.PROGRESS_PORT
    no_user_namespaces: str = ""  # why trial pods get none; empty: they do
    open_network: OpenNetwork = field(default_factory=OpenNetwork)
    versions: Mapping[str, str] = field(default_factory=dict)  # into trial.json, for people
    trials_per_plan: int = 50  # so that thousands of trials are created in many small plans
    status_seconds: float = 5.0  # least time between writes that change only counts
    retry_seconds: float = 15.0  # until a missing task set or script is looked for again
