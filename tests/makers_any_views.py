"""Views of trials by hypothesis: what a cluster could show, and some that it hardly could."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from makers_trial import EPOCH, TRIAL
from makers_views import (
    ADMITTED,
    AGENT_ENDED,
    CLOSED,
    MISSING,
    OPEN,
    POD_KINDS,
    RELEASED,
    RUNNING,
    SUSPENDED,
    make_results,
    make_view,
    silent_node,
)
from stayer_evaluator.records.outcomes import Role
from stayer_operator.api import names
from stayer_operator.api.conditions import Reason, TrialCondition
from stayer_operator.core.observed import PodView, Progress
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.status import TrialStatus
from stayer_operator.core.trial.view import ResultsFact, RoleView, TrialView

SECONDS = st.integers(0, 12_000).map(float)


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


RESULTS = [*4 * [None], *4 * [MISSING], ResultsFact(found=make_results())]


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
        queue=draw(st.sampled_from([None, OPEN, CLOSED])),
        written_at=draw(st.one_of(st.none(), SECONDS.map(lambda seconds: seconds + EPOCH))),
    )
    return view if view.agent is not None else replace(view, queue=None)
