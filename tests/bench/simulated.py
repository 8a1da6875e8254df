"""Simulated nodes, and how the pods on them live: manifests and kwok's stages. Pure.

A pod passes the states that the operator sees of a real one: containers waiting, the sidecar
starting, all running, all ended with the sidecar's termination message. It has no address:
nothing can be sent to it, and no packet filter has to be made for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Raw = dict[str, Any]

TAINT = "stayer.dev/simulated"
LABEL = "stayer.dev/simulated"
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}

# Milliseconds in a state, and up to how many in all when they vary.
STARTING = (500, 1500)
RUNNING = (500, 1500)
AGENT_WORKS = (5000, 15000)
ADJUDICATOR_WORKS = (30000, 50000)

AGENT_SAYS = {"kind": "end", "failure_mode": "none", "rounds": 1, "snapshots_taken": 4}
ADJUDICATOR_SAYS = {
    "kind": "results",
    "valid": True,
    "resolved": False,
    "failure_mode": "none",
    "rounds": 1,
    "snapshots_taken": 4,
    "snapshots_adjudicated": 4,
    "units_cleared": 0,
    "units_total": 3,
    "regressions": 0,
    "recoveries": 0,
}

_NODE = """\
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
phase: Running
"""

_CONTAINERS = """\
{{ $now := Now }}
phase: @PHASE
startTime: {{ or .status.startTime $now | Quote }}
conditions:
- {type: PodReadyToStartContainers, status: "@SANDBOX", lastTransitionTime: {{ $now | Quote }}}
- {type: Initialized, status: "@INITIALIZED", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "@READY", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "@READY", lastTransitionTime: {{ $now | Quote }}}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
{{ if eq .restartPolicy "Always" }}
  ready: @SIDECAR_STARTED
  started: @SIDECAR_STARTED
  state: @SIDECAR
{{ else if eq .name "restore" }}
  ready: @LAST_INIT_READY
  started: false
  state: @LAST_INIT
{{ else }}
  ready: @INIT_READY
  started: false
  state: @INIT
{{ end }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
  ready: @READY_LOWER
  started: @READY_LOWER
  state: @TASK
{{ end }}
"""

_WAITING = "{waiting: {reason: PodInitializing}}"
_ALIVE = "{running: {startedAt: {{ $now | Quote }}}}"
_TIMES = "startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}"
_ENDED = f"{{terminated: {{exitCode: 0, reason: Completed, {_TIMES}}}}}"


def stages() -> str:
    """kwok's configuration file."""
    documents = [
        _stage("node-ready", "Node", [_not_ready()], _NODE),
        _stage("pod-waiting", "Pod", [*_pending(), _there(".status.startTime", False)], _waiting()),
        _stage(
            "pod-sidecar-starting",
            "Pod",
            [*_pending(), _there(".status.startTime", True), _there(_RUNNING_INIT, False)],
            _sidecar_starting(),
            delay=STARTING,
        ),
        _stage(
            "pod-running",
            "Pod",
            [*_pending(), _there(_RUNNING_INIT, True)],
            _running(),
            delay=RUNNING,
        ),
        _end_stage("agent", AGENT_WORKS, AGENT_SAYS),
        _end_stage("adjudicator", ADJUDICATOR_WORKS, ADJUDICATOR_SAYS),
        _stage("pod-deleted", "Pod", [_there(".metadata.deletionTimestamp", True)], None),
    ]
    return "---\n".join(json.dumps(document, indent=1) + "\n" for document in documents)


def node(name: str, labels: Mapping[str, str]) -> Raw:
    """A node on which only pods land that ask for it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "true", **labels}},
        "spec": {"taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
    }


def placement() -> Raw:
    """What a run's pod templates need to ask for."""
    return {
        "nodeSelector": {LABEL: "true"},
        "tolerations": [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}],
    }


def _waiting() -> str:
    return _status("Pending", SANDBOX="True", SIDECAR=_WAITING, INIT=_WAITING, LAST_INIT=_WAITING)


def _sidecar_starting() -> str:
    states = {"SIDECAR": _ALIVE, "INIT": _ENDED, "INIT_READY": "true", "LAST_INIT": _WAITING}
    return _status("Pending", SANDBOX="True", **states)


def _running() -> str:
    states = {"SIDECAR": _ALIVE, "INIT": _ENDED, "LAST_INIT": _ENDED, "TASK": _ALIVE}
    facts = dict.fromkeys(("INIT_READY", "LAST_INIT_READY", "SIDECAR_STARTED"), "true")
    return _status("Running", SANDBOX="True", INITIALIZED="True", READY="True", **states, **facts)


def _end_stage(role: str, delay: tuple[int, int], said: Raw) -> Raw:
    message = json.dumps(said, separators=(",", ":"))
    sidecar = f"{_ENDED[:-2]}, message: '{message}'}}}}"
    states = {"SIDECAR": sidecar, "INIT": _ENDED, "LAST_INIT": _ENDED, "TASK": _ENDED}
    facts = dict.fromkeys(("INIT_READY", "LAST_INIT_READY"), "true")
    template = _status("Succeeded", INITIALIZED="True", **states, **facts)
    alive = [_there(".metadata.deletionTimestamp", False), _phase("Running")]
    stage = _stage(f"pod-{role}-ended", "Pod", alive, template, delay=delay)
    stage["spec"]["selector"]["matchLabels"] = {"stayer.dev/role": role}
    return stage


def _status(phase: str, **words: str) -> str:
    defaults = {
        "SANDBOX": "False",
        "INITIALIZED": "False",
        "READY": "False",
        "SIDECAR_STARTED": "false",
        "LAST_INIT_READY": "false",
        "INIT_READY": "false",
        "TASK": _WAITING,
    }
    values = defaults | {"PHASE": phase, **words}
    values["READY_LOWER"] = values["READY"].lower()
    text = _CONTAINERS
    for name in sorted(values, key=len, reverse=True):  # READY is the start of READY_LOWER
        text = text.replace(f"@{name}", values[name])
    return text


_RUNNING_INIT = ".status.initContainerStatuses.[] | select( .state.running ) | .name"


def _pending() -> list[Raw]:
    return [_there(".metadata.deletionTimestamp", False), _phase("Pending")]


def _phase(phase: str) -> Raw:
    return {"key": ".status.phase", "operator": "In", "values": [phase]}


def _there(key: str, wanted: bool) -> Raw:
    return {"key": key, "operator": "Exists" if wanted else "DoesNotExist"}


def _not_ready() -> Raw:
    key = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    return {"key": key, "operator": "NotIn", "values": ["True"]}


def _stage(
    name: str,
    kind: str,
    expressions: list[Raw],
    template: str | None,
    delay: tuple[int, int] | None = None,
) -> Raw:
    spec: Raw = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": expressions},
        "next": {"delete": True} if template is None else {"statusTemplate": template},
    }
    if delay is not None:
        spec["delay"] = {"durationMilliseconds": delay[0], "jitterDurationMilliseconds": delay[1]}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": spec,
    }
