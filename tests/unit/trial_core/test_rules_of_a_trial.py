"""One situation a line: which rule decides, what it writes, what it does."""

from dataclasses import replace

import pytest

from makers_trial import EPOCH
from makers_views import (
    ADMITTED,
    AGENT_ENDED,
    NOW,
    POD_KINDS,
    QUEUES,
    RELEASED,
    RUNNING,
    SUSPENDED,
    judged,
    live_pod,
    make_results,
    make_role,
    make_view,
    silent_node,
    young_pod,
)
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.results import TrialResults
from stayer_operator.api.conditions import Reason, TrialCondition, TrialPhase
from stayer_operator.core.observed import Progress
from stayer_operator.core.plan import (
    CreatePod,
    DeletePod,
    DeletePods,
    Plan,
    PodReplaced,
    PutObject,
    TrialEnded,
)
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.planner import plan_orphans, plan_trial
from stayer_operator.core.trial.rules import RULES
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.status import TrialStatus, parse_trial_status
from stayer_operator.core.trial.view import QueueFact, ResultsFact, TrialView

MISSING = ResultsFact(found=None)
OPEN = QUEUES[0]
CLOSED = QUEUES[1]
CANCEL = RunIntent(cancel=True, suspend=False)
SUSPEND = RunIntent(cancel=False, suspend=True)


def pair(
    agent: str, adjudicator: str, status: TrialStatus | None = None, **changes: object
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
    return make_view(status=status, **{**roles, **changes})  # type: ignore[arg-type]


def released(**fields: object) -> TrialStatus:
    return judged(*RELEASED, **fields)


AT_WORK = judged(ADMITTED, RUNNING)
DRAINING = judged(ADMITTED, RUNNING, AGENT_ENDED)
DONE = judged(ADMITTED, (TrialCondition.COMPLETE, True, Reason.RESULT_RECORDED))
SPENT = judged(ADMITTED, RUNNING, infra_restarts=3)

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

    assert undecided == {"drain_overdue"}  # below: it needs a status of its own


def plan(sentence: str) -> Plan:
    view = next(case[1] for case in CASES if case[0] == sentence)
    return plan_trial(view).plan


def status(sentence: str) -> TrialStatus:
    written = plan(sentence).status
    assert written is not None
    return parse_trial_status(written.status)


def test_pair_is_created_together() -> None:
    actions = plan("an admitted trial gets its pods").actions

    assert [action.manifest["metadata"]["name"][-3:] for action in actions] == ["a-1", "b-1"]  # type: ignore[union-attr]


def test_inventory_has_an_adjudicator_only() -> None:
    made = plan_trial(make_view(admitted=True, spec={"kind": "inventory"})).plan.actions

    assert [type(action) for action in made] == [CreatePod]


def test_replaced_pod_is_counted_and_announced_before_it_is_created() -> None:
    sentence = "a lost agent is replaced"

    after = status(sentence)

    assert plan(sentence).actions == ()
    assert (after.agent_incarnation, after.adjudicator_incarnation) == (2, 1)
    assert after.infra_restarts == 1
    assert after.reason(TrialCondition.RUNNING) == Reason.POD_REPLACED
    assert plan(sentence).measurements == (
        PodReplaced(role=Role.AGENT, fault="infrastructure", cause="drain"),
    )


def test_grader_that_the_candidate_brings_down_uses_up_no_retry() -> None:
    view = pair("at work", "out of memory", SPENT, results=MISSING)
    last = replace(
        view,
        adjudicator=replace(view.adjudicator, incarnation=TrialSettings().adjudicator_lives),
    )

    written = plan_trial(view).plan.status

    assert written is not None
    assert parse_trial_status(written.status).adjudicator_incarnation == 2
    assert parse_trial_status(written.status).infra_restarts == 3
    assert plan_trial(last).plan.status is not None
    assert plan_trial(last).plan.status.status["phase"] == "Failed"  # type: ignore[union-attr]


def test_first_replaced_pod_comes_at_once_and_later_ones_wait() -> None:
    waits = []
    for count in range(4):
        view = pair(
            "drained",
            "at work",
            judged(ADMITTED, RUNNING, infra_restarts=count),
            results=MISSING,
            queue=OPEN,
            spec={"infraRetries": 9},
        )
        written = plan_trial(view).plan.status
        assert written is not None
        waits.append(parse_trial_status(written.status).not_before)

    assert waits[0] is None
    assert waits[1:] == sorted(waits[1:])
    assert waits[1] > NOW


def test_operator_closes_the_queue_of_an_agent_that_brought_its_pod_down() -> None:
    (put,) = plan("an agent out of memory ends its episode").actions

    assert isinstance(put, PutObject)
    assert put.mode == "adopt"
    assert put.key.endswith("queue/00000004")


def test_trial_that_is_given_up_leaves_an_invalid_result() -> None:
    (put,) = plan("too many pods were lost").actions

    assert isinstance(put, PutObject)
    assert put.mode == "create"
    assert TrialResults.from_bytes(put.data).valid is False
    assert status("too many pods were lost").failure_mode == "infra_error"


def test_reason_of_a_refusal_stays() -> None:
    complete = status("isolation is not enforced").condition(TrialCondition.COMPLETE)

    assert complete is not None
    assert complete.reason == Reason.USER_NAMESPACE_NOT_ENFORCED


def test_released_pair_comes_back_under_new_names_after_a_while() -> None:
    after = status("half a pair has a node for too long")

    assert (after.agent_incarnation, after.adjudicator_incarnation) == (2, 2)
    assert after.released_attempts == 1
    assert after.infra_restarts == 0
    assert after.not_before is not None
    assert NOW + 15 <= after.not_before <= NOW + 31


def test_pods_that_do_not_start_count_as_a_failure() -> None:
    after = status("pods that do not start")

    assert after.infra_restarts == 1
    assert after.reason(TrialCondition.ADMITTED) == Reason.IMAGE_PULL


def test_suspending_counts_nothing_and_lets_the_recorder_finish() -> None:
    after = status("a suspended run gives its pods back")
    view = make_view(
        status=after,
        run=SUSPEND,
        agent=make_role(Role.AGENT, after, older=(live_pod(Role.AGENT),)),
        adjudicator=make_role(Role.ADJUDICATOR, after),
    )

    (delete,) = plan_trial(view).plan.actions

    assert (after.infra_restarts, after.released_attempts) == (0, 0)
    assert isinstance(delete, DeletePod)
    assert delete.grace_seconds is None


def test_cancel_sweeps_the_pods_with_a_short_grace() -> None:
    (sweep,) = plan("a cancelled run ends its trials").actions

    assert isinstance(sweep, DeletePods)
    assert sweep.grace_seconds == 10


def test_pods_that_garbage_collection_deletes_slowly_are_hurried() -> None:
    slow = live_pod(Role.AGENT, deletion=10_590, grace=600)
    settled = live_pod(Role.ADJUDICATOR, deletion=10_009, grace=10)

    decision = plan_orphans((slow, settled), NOW, TrialSettings())

    assert [action.name for action in decision.plan.actions] == [slow.name]  # type: ignore[union-attr]
    assert decision.plan.wake_after is not None


def test_pods_whose_trial_was_not_seen_yet_are_left_alone() -> None:
    decision = plan_orphans((live_pod(Role.AGENT),), NOW, TrialSettings())

    assert decision.plan.actions == ()


def test_progress_is_told_at_most_once_a_minute() -> None:
    view = pair("at work", "at work", AT_WORK, progress=Progress(units_cleared=2))

    early = plan_trial(replace(view, written_at=NOW - 20)).plan

    assert early.status is None
    assert early.wake_after == 40
    assert plan_trial(replace(view, written_at=NOW - 60)).plan.status is not None


def test_trial_is_given_up_when_draining_takes_far_too_long() -> None:
    limit = 2 * 7200 + 600 + 3600
    view = pair("agent has ended", "at work for ever", DRAINING, now=EPOCH + limit)

    unread = plan_trial(view)
    overdue = plan_trial(replace(view, results=MISSING))

    assert unread.rule == "unread"
    assert overdue.rule == "drain_overdue"
    assert plan_trial(replace(view, now=EPOCH + limit - 1)).rule == "waiting"


def test_draining_does_not_count_the_time_without_a_pod() -> None:
    """A run that is suspended while it drains for longer than the limit goes on afterwards."""
    view = pair("agent has ended", "at work", DRAINING, now=EPOCH + 9_000 + 18_000)

    assert plan_trial(view).rule == "waiting"


def test_ended_trial_is_measured() -> None:
    (ended,) = plan("the adjudicator has a valid result").measurements

    assert isinstance(ended, TrialEnded)
    assert (ended.kind, ended.phase, ended.failure_mode) == ("attempt", "Succeeded", "none")


def test_hint_fills_the_status() -> None:
    after = status("the adjudicator has a valid result")

    assert (after.units_cleared, after.units_total, after.resolved) == (3, 3, True)
    assert after.results is not None
    assert after.completion_time == NOW


def test_wake_is_the_next_deadline() -> None:
    assert plan("half a pair has a node for less than a minute").wake_after == 50
    assert plan("a starting pair is waited for").wake_after == 890


def test_queue_without_snapshots_can_be_closed_too() -> None:
    queue = QueueFact(next_number=0, end=None, cursor=OPEN.cursor)
    view = pair("killed", "at work", AT_WORK, results=MISSING, queue=queue)

    (put,) = plan_trial(view).plan.actions

    assert isinstance(put, PutObject)
    assert put.key.endswith("queue/00000000")
