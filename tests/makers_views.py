"""Views of trials, by hand."""

from __future__ import annotations

from typing import Any

from makers_trial import (
    EPOCH,
    TRIAL,
    condition,
    ended,
    make_pod_settings,
    make_raw_pod,
    make_raw_spec,
    make_raw_trial,
    running,
    said,
    terminated,
    waiting,
)
from stayer_evaluator.records.outcomes import FailureMode, Role, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor
from stayer_evaluator.records.results import TrialResults
from stayer_operator.api.conditions import Reason, TrialCondition
from stayer_operator.core.observed import NodeView, PodView
from stayer_operator.core.projection import pod_view, trial_object
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.spec import parse_trial_spec
from stayer_operator.core.trial.status import TrialStatus, render_trial_status
from stayer_operator.core.trial.view import QueueFact, ResultsFact, RoleView, TrialView

NOW = EPOCH + 10_000.0


def make_view(
    *,
    status: TrialStatus | None = None,
    spec: dict[str, Any] | None = None,
    agent: RoleView | None = None,
    adjudicator: RoleView | None = None,
    deleted: bool = False,
    **changes: Any,
) -> TrialView:
    """A view of an attempt; without pods unless they are given."""
    status = status or TrialStatus()
    raw = make_raw_trial(spec=make_raw_spec(**(spec or {})), status=render_trial_status(status))
    if deleted:
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    parsed = parse_trial_spec(raw["spec"])
    has_agent = parsed.kind is TrialKind.ATTEMPT
    return TrialView(
        **{
            "trial": trial_object(raw),
            "spec": parsed,
            "status": status,
            "run": RunIntent(cancel=False, suspend=False),
            "admitted": False,
            "agent": (agent or make_role(Role.AGENT, status)) if has_agent else None,
            "adjudicator": adjudicator or make_role(Role.ADJUDICATOR, status),
            "now": NOW,
            "pod_settings": make_pod_settings(),
            "settings": TrialSettings(),
            **changes,
        }
    )


def make_role(role: Role, status: TrialStatus | None = None, **changes: Any) -> RoleView:
    incarnation = (status or TrialStatus()).incarnation(role)
    return RoleView(**{"role": role, "incarnation": incarnation, **changes})


def judged(*judgements: tuple[TrialCondition, bool, Reason], **fields: Any) -> TrialStatus:
    """A status with these conditions, since EPOCH."""
    status = TrialStatus(**fields)
    for type_, holds, reason in judgements:
        status = status.judged(type_, holds, reason, "", now=EPOCH, generation=1)
    return status


ADMITTED = (TrialCondition.ADMITTED, True, Reason.PODS_CREATED)
RUNNING = (TrialCondition.RUNNING, True, Reason.PODS_RUNNING)
AGENT_ENDED = (TrialCondition.AGENT_ENDED, True, Reason.AGENT_ENDED)


def sidecar_name(role: Role) -> str:
    return "recorder" if role is Role.AGENT else "adjudicator"


def live_pod(role: Role, incarnation: int = 1, **more: Any) -> PodView:
    """A pod whose containers run."""
    defaults = {
        "created": 9_000,
        "conditions": [condition("PodScheduled", since=9_001)],
        "inits": [running(sidecar_name(role))],
        "containers": [running("task")],
    }
    return pod_view(make_raw_pod(role, incarnation, **{**defaults, **more}))


def young_pod(role: Role, incarnation: int = 1, *, node: str = "node-1", **more: Any) -> PodView:
    """A pod that was just created; with a node, unless it is empty."""
    scheduled = condition("PodScheduled", since=9_990)
    refused = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes fit", since=9_990)
    defaults = {
        "phase": "Pending",
        "created": 9_989,
        "node": node,
        "conditions": [scheduled if node else refused],
        "containers": [waiting("task", "PodInitializing")],
    }
    return pod_view(make_raw_pod(role, incarnation, **{**defaults, **more}))


def ended_pod(
    role: Role,
    incarnation: int = 1,
    *,
    message: str = "",
    code: int = 0,
    reason: str = "",
    **more: Any,
) -> PodView:
    """A terminal pod whose sidecar left that message."""
    return pod_view(
        make_raw_pod(
            role,
            incarnation,
            phase="Succeeded" if code == 0 else "Failed",
            created=9_000,
            inits=[terminated(sidecar_name(role), 0, message=message, finished=9_500)],
            containers=[terminated("task", code, reason, finished=9_500)],
            **more,
        )
    )


def make_results(valid: bool = True) -> TrialResults:
    return TrialResults(
        kind=TrialKind.ATTEMPT,
        namespace="lab",
        run="demo",
        trial=TRIAL,
        task="parser",
        task_digest="a" * 64,
        agent="oracle",
        model="none",
        loop="outer",
        attempt=1,
        valid=valid,
        failure_mode=FailureMode.NONE if valid else FailureMode.INFRA_ERROR,
        metrics=None,
    )


def silent_node(since: float = 0) -> NodeView:
    return NodeView(name="node-1", uid="n", resource_version="1", ready=False, since=EPOCH + since)


RELEASED = [
    (TrialCondition.ADMITTED, False, Reason.PAIR_RELEASED),
    (TrialCondition.RUNNING, False, Reason.PAIR_RELEASED),
]
SUSPENDED = [
    (TrialCondition.ADMITTED, False, Reason.RUN_SUSPENDED),
    (TrialCondition.RUNNING, False, Reason.RUN_SUSPENDED),
]
MISSING = ResultsFact(found=None)
OPEN = QueueFact(next_number=4, end=None, cursor=EpisodeCursor(round=2))
CLOSED = QueueFact(
    next_number=5,
    end=EndEntry(
        number=4,
        writer=None,
        time=EPOCH,
        failure_mode=FailureMode.AGENT_OOM,
        episode=EpisodeCursor(),
    ),
    cursor=EpisodeCursor(),
)

DISK_FULL = 'Usage of EmptyDir volume "workspace" exceeds the limit "8Gi".'


def pod_kinds(role: Role, incarnation: int) -> dict[str, PodView]:
    """One pod of every kind that matters, by what it is."""
    sidecar = sidecar_name(role)

    def sidecar_ended(code: int, message: str = "", restarts: int = 1) -> list[dict[str, Any]]:
        last = ended(code, "", message, finished=9_400)
        return [running(sidecar, restartCount=restarts, lastState=last)]

    eviction = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", since=9_400)
    scheduled = condition("PodScheduled", since=9_001)
    valid = said("results", valid=True, resolved=True, units_cleared=3, units_total=3)
    invalid = said("results", valid=False, failure_mode="infra_error")
    refusal = said("error", reason="UserNamespaceNotEnforced", message="identity")
    pull = waiting("task", "ImagePullBackOff", "back-off")
    mine = {
        "unscheduled": young_pod(role, incarnation, node=""),
        "unscheduled for long": young_pod(role, incarnation, node="", created=9_000),
        "not looked at": young_pod(role, incarnation, node="", conditions=[], created=9_000),
        "starting": young_pod(role, incarnation),
        "starting for long": young_pod(
            role, incarnation, created=8_000, conditions=[scheduled], containers=[pull]
        ),
        "at work": live_pod(role, incarnation),
        "at work since just now": live_pod(role, incarnation, created=9_995),
        "at work for ever": live_pod(role, incarnation, created=0),
        "being deleted": live_pod(role, incarnation, deletion=10_500),
        "being deleted on a silent node": live_pod(role, incarnation, deletion=9_000),
        "sidecar restarted": live_pod(role, incarnation, inits=sidecar_ended(1)),
        "sidecar restarted too often": live_pod(role, incarnation, inits=sidecar_ended(1, "", 5)),
        "fenced": live_pod(role, incarnation, inits=sidecar_ended(3, said("fenced"))),
        "refused": live_pod(role, incarnation, inits=sidecar_ended(4, refusal)),
        "ended without a word": ended_pod(role, incarnation),
        "ended by a stop": ended_pod(role, incarnation, message=said("stopped"), code=143),
        "ended and talks nonsense": ended_pod(role, incarnation, message="win"),
        "out of memory": ended_pod(role, incarnation, code=137, reason="OOMKilled"),
        "killed": ended_pod(role, incarnation, code=137),
        "drained": ended_pod(role, incarnation, code=143, conditions=[scheduled, eviction]),
        "its disk is full": pod_view(
            make_raw_pod(role, incarnation, phase="Failed", reason="Evicted", message=DISK_FULL)
        ),
    }
    if role is Role.AGENT:
        end = said("end", failure_mode="none", rounds=2, snapshots_taken=7)
        return mine | {"agent has ended": ended_pod(role, incarnation, message=end)}
    return mine | {
        "valid result": ended_pod(role, incarnation, message=valid),
        "invalid result": ended_pod(role, incarnation, message=invalid),
    }


POD_KINDS = {
    (role, incarnation): pod_kinds(role, incarnation)
    for role in Role
    for incarnation in range(1, 4)
}


def pair(
    agent: str, adjudicator: str, status: TrialStatus | None = None, **changes: Any
) -> TrialView:
    """A view with a pod of that kind for each role, under the incarnations of the status."""
    status = status or TrialStatus()
    roles = {
        name: make_role(role, status, pod=POD_KINDS[role, status.incarnation(role)][kind])
        for name, role, kind in (
            ("agent", Role.AGENT, agent),
            ("adjudicator", Role.ADJUDICATOR, adjudicator),
        )
    }
    return make_view(status=status, **{**roles, **changes})


def released(**fields: Any) -> TrialStatus:
    return judged(*RELEASED, **fields)


AT_WORK = judged(ADMITTED, RUNNING)
DRAINING = judged(ADMITTED, RUNNING, AGENT_ENDED)
DONE = judged(ADMITTED, (TrialCondition.COMPLETE, True, Reason.RESULT_RECORDED))
SPENT = judged(ADMITTED, RUNNING, infra_restarts=3)
