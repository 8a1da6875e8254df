"""Views of trials, by hand and by hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

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
    terminated,
    waiting,
)
from stayer_evaluator.records.outcomes import FailureMode, Role, TrialKind
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.results import TrialResults
from stayer_operator.api import names
from stayer_operator.api.conditions import Reason, TrialCondition
from stayer_operator.core.observed import NodeView, PodView, Progress
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


def said(kind: str, **fields: Any) -> str:
    return TerminationMessage(kind=kind, **fields).to_bytes().decode()


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


# Hypothesis: views that a cluster could show, and some that it hardly could.

DISK_FULL = 'Usage of EmptyDir volume "workspace" exceeds the limit "8Gi".'
SECONDS = st.integers(0, 12_000).map(float)


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


def pods(role: Role, incarnation: int) -> st.SearchStrategy[PodView]:
    """One of those."""
    return st.sampled_from(list(POD_KINDS[role, incarnation].values()))


@st.composite
def roles(draw: st.DrawFn, role: Role, status: TrialStatus) -> RoleView:
    """What may be known of a role."""
    incarnation = status.incarnation(role)
    known = draw(st.sampled_from(["pod", "pod", "pod", "nothing", "gone", "posted", "unknown"]))
    older = [draw(pods(role, earlier)) for earlier in range(1, incarnation) if draw(st.booleans())]
    return RoleView(
        role=role,
        incarnation=incarnation,
        pod=draw(pods(role, incarnation)) if known == "pod" else None,
        last_seen=draw(pods(role, incarnation)) if known == "gone" else None,
        older=tuple(older),
        posted_at=draw(SECONDS) + EPOCH if known == "posted" else None,
        tried_at=draw(st.one_of(st.none(), SECONDS.map(lambda seconds: seconds + EPOCH))),
        may_exist=known == "unknown",
    )


@st.composite
def statuses(draw: st.DrawFn) -> TrialStatus:
    """A status that this or an earlier version may have written."""
    status = TrialStatus(
        agent_incarnation=draw(st.integers(1, 3)),
        adjudicator_incarnation=draw(st.integers(1, 3)),
        infra_restarts=draw(st.integers(0, 4)),
        released_attempts=draw(st.integers(0, 3)),
        not_before=draw(st.one_of(st.none(), SECONDS.map(lambda seconds: seconds + EPOCH))),
        units_cleared=draw(st.one_of(st.none(), st.integers(0, 5))),
        agent_pod=draw(st.sampled_from([None, names.pod_name(TRIAL, Role.AGENT, 1)])),
    )
    for judgement in draw(st.sampled_from(HISTORIES)):
        status = status.judged(*judgement, "", now=EPOCH, generation=1)
    return status


RELEASED = [
    (TrialCondition.ADMITTED, False, Reason.PAIR_RELEASED),
    (TrialCondition.RUNNING, False, Reason.PAIR_RELEASED),
]
SUSPENDED = [
    (TrialCondition.ADMITTED, False, Reason.RUN_SUSPENDED),
    (TrialCondition.RUNNING, False, Reason.RUN_SUSPENDED),
]
HISTORIES = [
    [],
    [ADMITTED],
    [ADMITTED, RUNNING],
    [ADMITTED, RUNNING, AGENT_ENDED],
    RELEASED,
    SUSPENDED,
    [*RELEASED, AGENT_ENDED],
    [ADMITTED, RUNNING, (TrialCondition.COMPLETE, True, Reason.CANCELLED)],
    [ADMITTED, AGENT_ENDED, (TrialCondition.COMPLETE, True, Reason.RESULT_RECORDED)],
]
INTENTS = [
    *5 * [RunIntent(cancel=False, suspend=False)],
    RunIntent(cancel=False, suspend=True),
    RunIntent(cancel=True, suspend=False),
    None,
]


RESULTS = [*4 * [None], *4 * [ResultsFact(found=None)], ResultsFact(found=make_results())]
QUEUES = [
    QueueFact(next_number=4, end=None, cursor=EpisodeCursor(round=2)),
    QueueFact(
        next_number=5,
        end=EndEntry(
            number=4,
            writer=None,
            time=EPOCH,
            failure_mode=FailureMode.AGENT_OOM,
            episode=EpisodeCursor(),
        ),
        cursor=EpisodeCursor(),
    ),
]


@st.composite
def views(draw: st.DrawFn) -> TrialView:
    """Any view, evidence read or not."""
    status = draw(statuses())
    kind = draw(st.sampled_from(["attempt", "attempt", "inventory"]))
    view = make_view(
        status=status,
        spec={
            "kind": kind,
            "onAgentLoss": draw(st.sampled_from(["resume", "restart", "fail"])),
            "infraRetries": draw(st.integers(0, 4)),
        },
        agent=draw(roles(Role.AGENT, status)),
        adjudicator=draw(roles(Role.ADJUDICATOR, status)),
        deleted=draw(st.integers(0, 19)) == 13,
        run=draw(st.sampled_from(INTENTS)),
        admitted=draw(st.booleans()),
        nodes=draw(st.sampled_from([{}, {"node-1": silent_node()}])),
        progress=draw(st.sampled_from([None, Progress(units_cleared=4)])),
        results=draw(st.sampled_from(RESULTS)),
        queue=draw(st.sampled_from([None, *QUEUES])),
        written_at=draw(st.one_of(st.none(), SECONDS.map(lambda seconds: seconds + EPOCH))),
    )
    return view if view.agent is not None else replace(view, queue=None)


def silent_node(since: float = 0) -> NodeView:
    return NodeView(name="node-1", uid="n", resource_version="1", ready=False, since=EPOCH + since)
