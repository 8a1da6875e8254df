"""Names that other programs see: group, kinds, labels, annotations, object names."""

import hashlib
from typing import Final

from stayer_evaluator.records.outcomes import Role, TrialKind

GROUP: Final = "stayer.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CATEGORY: Final = "stayer"

RUN_KIND: Final = "BenchmarkRun"
RUN_PLURAL: Final = "benchmarkruns"
RUN_SINGULAR: Final = "benchmarkrun"
RUN_SHORT: Final = "brun"

TRIAL_KIND: Final = "Trial"
TRIAL_PLURAL: Final = "trials"
TRIAL_SINGULAR: Final = "trial"
TRIAL_SHORT: Final = "btrial"

LABEL_RUN: Final = f"{GROUP}/run"
LABEL_RUN_UID: Final = f"{GROUP}/run-uid"
LABEL_TRIAL: Final = f"{GROUP}/trial"
LABEL_TRIAL_UID: Final = f"{GROUP}/trial-uid"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_KIND: Final = f"{GROUP}/kind"

LABEL_APP: Final = "app.kubernetes.io/name"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
APP: Final = "stayer"
LABEL_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # set by Kubernetes on every namespace

# Values of app.kubernetes.io/component. The chart gives them to its pods, the network policies of
# runs select by them.
COMPONENT_OPERATOR: Final = "operator"  # also serves the progress endpoint
COMPONENT_RELAY: Final = "relay"
COMPONENT_AGENT: Final = "agent"
COMPONENT_ADJUDICATOR: Final = "adjudicator"
COMPONENT_TRIAL: Final = "trial"  # Trial objects
COMPONENT_NETWORK: Final = "network"  # NetworkPolicies of a run
COMPONENT_PROBE: Final = "probe"  # the operator's probe pods

# Values of stayer.dev/role.
ROLE_LABELS: Final = {Role.AGENT: COMPONENT_AGENT, Role.ADJUDICATOR: COMPONENT_ADJUDICATOR}

# A trial pod is known by two labels; the informer's selector for pods.
POD_SELECTOR: Final = f"{LABEL_APP}={APP},{LABEL_TRIAL_UID}"

RUN_NAME_LIMIT: Final = 40  # leaves room for the suffixes of trials and pods below 63
LABEL_LIMIT: Final = 63
HASH_DIGITS: Final = 10


def digest10(*parts: object) -> str:
    """First ten hex digits of the sha256 over the parts, each closed by a NUL."""
    text = "".join(f"{part}\0" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def attempt_trial_name(
    *,
    run: str,
    run_uid: str,
    task: str,
    task_digest: str,
    agent: str,
    model: str,
    loop: str,
    attempt: int,
    generation: int,
    restarts: int = 0,
) -> str:
    """Name of the Trial of one attempt; the same coordinates always give the same name."""
    parts = (run_uid, TrialKind.ATTEMPT, task, task_digest, agent, model, loop, attempt, generation)
    suffix = digest10(*parts, *((restarts,) if restarts else ()))
    return f"{run}-{suffix}"


def inventory_trial_name(*, run: str, run_uid: str, task_digest: str, generation: int) -> str:
    """Name of the Trial that takes a task's inventory for a run."""
    return f"{run}-inv-{digest10(run_uid, TrialKind.INVENTORY, task_digest, generation)}"


def pod_name(trial: str, role: Role, incarnation: int) -> str:
    """Name of one life of one pod of a trial; incarnations count from 1."""
    return f"{trial}-{role.value}-{incarnation}"


def label_value(text: str) -> str:
    """`text` where it fits a label, else its start and a hash; never longer than 63."""
    if len(text) <= LABEL_LIMIT:
        return text
    return f"{text[: LABEL_LIMIT - HASH_DIGITS - 1].rstrip('-._')}-{digest10(text)}"


def run_labels(run: str, run_uid: str, component: str) -> dict[str, str]:
    """Labels of everything that belongs to a run."""
    return {
        LABEL_APP: APP,
        LABEL_MANAGED_BY: APP,
        LABEL_COMPONENT: component,
        LABEL_RUN: label_value(run),
        LABEL_RUN_UID: run_uid,
    }


def trial_labels(*, run: str, run_uid: str, kind: TrialKind) -> dict[str, str]:
    """Labels of a Trial object."""
    return run_labels(run, run_uid, COMPONENT_TRIAL) | {LABEL_KIND: kind.value}


def pod_labels(
    *, run: str, run_uid: str, trial: str, trial_uid: str, role: Role, kind: TrialKind
) -> dict[str, str]:
    """Labels of a trial's pod."""
    return run_labels(run, run_uid, ROLE_LABELS[role]) | {
        LABEL_TRIAL: label_value(trial),
        LABEL_TRIAL_UID: trial_uid,
        LABEL_ROLE: ROLE_LABELS[role],
        LABEL_KIND: kind.value,
    }


def owner_reference(kind: str, name: str, uid: str) -> dict[str, object]:
    """Controller reference to a run or trial; its deletion is never blocked by the dependents."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
