"""One situation a line: which rule decides, and the phase that it writes."""

import pytest

from makers_views import (
    AT_WORK,
    CLOSED,
    DONE,
    DRAINING,
    MISSING,
    NOW,
    OPEN,
    POD_KINDS,
    SPENT,
    SUSPENDED,
    judged,
    live_pod,
    make_results,
    make_role,
    make_view,
    pair,
    released,
    silent_node,
    young_pod,
)
from stayer_evaluator.records.outcomes import Role
from stayer_operator.api.conditions import TrialPhase
from stayer_operator.core.observed import Progress
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.planner import plan_trial
from stayer_operator.core.trial.rules import RULES
from stayer_operator.core.trial.view import ResultsFact, TrialView

CANCEL = RunIntent(cancel=True, suspend=False)
SUSPEND = RunIntent(cancel=False, suspend=True)

CASES: list[tuple[str, TrialView, str, TrialPhase | None]] = [
    ("a new trial that is not admitted waits", make_view(), "waiting_for_admission", None),
    ("an admitted trial gets its pods", make_view(admitted=True), "pods_missing", None),
    (
        "a trial that existed before this process gets new names for its pods",
        make_view(
            admitted=True,
            agent=make_role(Role.AGENT, may_exist=True),
            adjudicator=make_role(Role.ADJUDICATOR, may_exist=True),
        ),
        "unknown_history",
        TrialPhase.PENDING,
    ),
    (
        "the second pod is created although admission has moved on",
        make_view(agent=make_role(Role.AGENT, pod=young_pod(Role.AGENT))),
        "pods_missing",
        None,
    ),
    (
        "pods that were just created are waited for",
        make_view(
            admitted=True,
            agent=make_role(Role.AGENT, posted_at=NOW - 1),
            adjudicator=make_role(Role.ADJUDICATOR, posted_at=NOW - 1),
        ),
        "waiting",
        None,
    ),
    ("a starting pair is waited for", pair("starting", "starting"), "waiting", None),
    ("both run for the first time", pair("at work", "at work"), "started", TrialPhase.RUNNING),
    ("both are at work", pair("at work", "at work", AT_WORK), "waiting", None),
    (
        "news are told",
        pair("at work", "at work", AT_WORK, progress=Progress(units_cleared=2)),
        "progressed",
        TrialPhase.RUNNING,
    ),
    (
        "the agent has ended and says so",
        pair("agent has ended", "at work", AT_WORK),
        "agent_ended",
        TrialPhase.DRAINING,
    ),
    (
        "the agent has ended, only the queue says so",
        pair("ended without a word", "at work", AT_WORK, results=MISSING, queue=CLOSED),
        "agent_ended",
        TrialPhase.DRAINING,
    ),
    ("the rest is adjudicated", pair("agent has ended", "at work", DRAINING), "waiting", None),
    (
        "the adjudicator has a valid result",
        pair("agent has ended", "valid result", DRAINING),
        "result_recorded",
        TrialPhase.SUCCEEDED,
    ),
    (
        "the adjudicator has an invalid result",
        pair("agent has ended", "invalid result", DRAINING),
        "result_recorded",
        TrialPhase.FAILED,
    ),
    (
        "the adjudicator is gone and its result is there",
        pair(
            "agent has ended",
            "ended without a word",
            DRAINING,
            results=ResultsFact(found=make_results()),
        ),
        "result_recorded",
        TrialPhase.SUCCEEDED,
    ),
    (
        "a result that came before the cancel counts",
        pair("agent has ended", "valid result", DRAINING, run=CANCEL),
        "result_recorded",
        TrialPhase.SUCCEEDED,
    ),
    (
        "evidence is read before a lost adjudicator is judged",
        pair("agent has ended", "ended without a word", DRAINING),
        "unread",
        None,
    ),
    (
        "a lost adjudicator is replaced",
        pair("agent has ended", "drained", DRAINING, results=MISSING),
        "adjudicator_lost",
        TrialPhase.DRAINING,
    ),
    (
        "a lost agent is replaced",
        pair("drained", "at work", AT_WORK, results=MISSING, queue=OPEN),
        "agent_lost",
        TrialPhase.RUNNING,
    ),
    (
        "a lost agent ends the trial where the run wants it",
        pair(
            "drained",
            "at work",
            AT_WORK,
            results=MISSING,
            queue=OPEN,
            spec={"onAgentLoss": "fail"},
        ),
        "agent_lost",
        TrialPhase.FAILED,
    ),
    (
        "too many pods were lost",
        pair("drained", "at work", SPENT, results=MISSING, queue=OPEN),
        "agent_lost",
        TrialPhase.FAILED,
    ),
    (
        "an agent out of memory ends its episode",
        pair("out of memory", "at work", AT_WORK, results=MISSING, queue=OPEN),
        "agent_at_fault",
        None,
    ),
    (
        "an agent that filled its disk ends its episode",
        pair("its disk is full", "at work", AT_WORK, results=MISSING, queue=OPEN),
        "agent_at_fault",
        None,
    ),
    (
        "an adjudicator out of memory is only replaced",
        pair("at work", "out of memory", AT_WORK, results=MISSING),
        "adjudicator_lost",
        TrialPhase.RUNNING,
    ),
    (
        "a fenced recorder is replaced",
        pair("fenced", "at work", AT_WORK, results=MISSING),
        "agent_lost",
        TrialPhase.RUNNING,
    ),
    ("a sidecar may restart", pair("sidecar restarted", "at work", AT_WORK), "waiting", None),
    (
        "a sidecar that restarts for ever is replaced",
        pair("at work", "sidecar restarted too often", AT_WORK, results=MISSING),
        "adjudicator_lost",
        TrialPhase.RUNNING,
    ),
    (
        "an agent pod far beyond its time is replaced",
        pair("at work for ever", "at work", AT_WORK, results=MISSING),
        "agent_lost",
        TrialPhase.RUNNING,
    ),
    (
        "isolation is not enforced",
        pair("refused", "at work", AT_WORK, results=MISSING),
        "refused",
        TrialPhase.FAILED,
    ),
    (
        "a pod that ran before this process came and is gone was lost",
        make_view(
            status=AT_WORK,
            agent=make_role(Role.AGENT, may_exist=True),
            adjudicator=make_role(Role.ADJUDICATOR, pod=live_pod(Role.ADJUDICATOR)),
            results=MISSING,
            queue=OPEN,
        ),
        "agent_lost",
        TrialPhase.RUNNING,
    ),
    (
        "a pod that is being deleted is waited for",
        pair("being deleted", "at work", AT_WORK),
        "waiting",
        None,
    ),
    (
        "a pod on a silent node is lost a minute after its grace",
        pair(
            "being deleted on a silent node",
            "at work",
            AT_WORK,
            nodes={"node-1": silent_node()},
            results=MISSING,
            queue=OPEN,
        ),
        "agent_lost",
        TrialPhase.RUNNING,
    ),
    (
        "half a pair has a node for less than a minute",
        pair("starting", "unscheduled"),
        "waiting",
        None,
    ),
    (
        "half a pair has a node for too long",
        pair("starting for long", "unscheduled for long"),
        "half_pair",
        TrialPhase.PENDING,
    ),
    (
        "a partner that cannot even be created for a minute",
        make_view(
            agent=make_role(
                Role.AGENT, pod=POD_KINDS[Role.AGENT, 1]["starting for long"]
            ),
            adjudicator=make_role(Role.ADJUDICATOR, tried_at=NOW - 61),
        ),
        "half_pair",
        TrialPhase.PENDING,
    ),
    (
        "a pair that fits nowhere",
        pair("unscheduled for long", "unscheduled for long"),
        "unschedulable",
        TrialPhase.PENDING,
    ),
    (
        "a scheduler that does not look",
        pair("not looked at", "not looked at"),
        "waiting",
        None,
    ),
    (
        "pods that do not start",
        pair("starting for long", "starting for long", results=MISSING),
        "late_start",
        TrialPhase.PENDING,
    ),
    (
        "pods that never start",
        pair("starting for long", "starting for long", SPENT, results=MISSING),
        "late_start",
        TrialPhase.FAILED,
    ),
    (
        "pods of an earlier incarnation still live",
        make_view(
            status=released(agent_incarnation=2, adjudicator_incarnation=2),
            agent=make_role(
                Role.AGENT,
                released(agent_incarnation=2),
                older=(live_pod(Role.AGENT),),
            ),
        ),
        "superseded",
        None,
    ),
    (
        "a successor that has not begun when its predecessor's end is heard of",
        pair("unscheduled", "at work", DRAINING),
        "superseded",
        None,
    ),
    (
        "a released pair waits for its back-off",
        make_view(status=released(not_before=NOW + 20), admitted=True),
        "pods_missing",
        None,
    ),
    (
        "a suspended run gives its pods back",
        pair("at work", "at work", AT_WORK, run=SUSPEND),
        "suspended",
        TrialPhase.PENDING,
    ),
    (
        "a suspended trial without pods stays as it is",
        make_view(status=judged(*SUSPENDED), run=SUSPEND),
        "waiting_for_admission",
        None,
    ),
    (
        "evidence is read before a refusal ends a trial of a suspended run",
        pair("at work", "refused", AT_WORK, run=SUSPEND),
        "unread",
        None,
    ),
    (
        "a refusal ends a trial of a suspended run",
        pair("at work", "refused", AT_WORK, run=SUSPEND, results=MISSING),
        "refused",
        TrialPhase.FAILED,
    ),
    (
        "a cancelled run ends its trials",
        pair("at work", "at work", AT_WORK, run=CANCEL),
        "cancelled",
        TrialPhase.CANCELLED,
    ),
    (
        "a cancel needs no evidence",
        pair("drained", "ended without a word", AT_WORK, run=CANCEL),
        "cancelled",
        TrialPhase.CANCELLED,
    ),
    ("a trial whose run is not seen waits", make_view(run=None), "orphaned", None),
    (
        "a finished trial gives its pods back",
        pair("agent has ended", "valid result", DONE),
        "finished",
        None,
    ),
    ("a deleted trial gives pods back", pair("at work", "at work", deleted=True), "deleted", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("view", "rule", "phase"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_rule_decides(view: TrialView, rule: str, phase: TrialPhase | None) -> None:
    decision = plan_trial(view)

    written = decision.plan.status
    assert decision.rule == rule
    assert (written.status["phase"] if written else None) == phase


def test_every_rule_has_a_situation() -> None:
    undecided = {rule.name for rule in RULES} - {case[2] for case in CASES}

    assert undecided == {"drain_overdue"}  # its limit: test_what_plans_of_a_trial_do.py
