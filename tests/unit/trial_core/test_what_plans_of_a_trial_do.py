"""What the plans of a trial do and write, beside the phase."""

from dataclasses import replace

from makers_trial import EPOCH
from makers_views import (
    ADMITTED,
    AT_WORK,
    DRAINING,
    MISSING,
    NOW,
    OPEN,
    RUNNING,
    SPENT,
    judged,
    live_pod,
    make_role,
    make_view,
    pair,
)
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.results import TrialResults
from stayer_operator.api.conditions import Reason, TrialCondition
from stayer_operator.core.observed import Progress
from stayer_operator.core.plan import (
    CreatePod,
    DeletePod,
    DeletePods,
    PodReplaced,
    PutObject,
    TrialEnded,
)
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.planner import plan_orphans, plan_trial
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.status import TrialStatus, parse_trial_status
from stayer_operator.core.trial.view import QueueFact, TrialView

LOST_AGENT = pair("drained", "at work", AT_WORK, results=MISSING, queue=OPEN)
LOST_TOO_OFTEN = pair("drained", "at work", SPENT, results=MISSING, queue=OPEN)
SCORED = pair("agent has ended", "valid result", DRAINING)
HALF_PAIR = pair("starting for long", "unscheduled for long")
SUSPEND = RunIntent(cancel=False, suspend=True)


def status(view: TrialView) -> TrialStatus:
    written = plan_trial(view).plan.status
    assert written is not None
    return parse_trial_status(written.status)


def test_pair_is_created_together() -> None:
    actions = plan_trial(make_view(admitted=True)).plan.actions

    assert [action.manifest["metadata"]["name"][-3:] for action in actions] == ["a-1", "b-1"]  # type: ignore[union-attr]


def test_inventory_has_an_adjudicator_only() -> None:
    made = plan_trial(make_view(admitted=True, spec={"kind": "inventory"})).plan.actions

    assert [type(action) for action in made] == [CreatePod]


def test_replaced_pod_is_counted_and_announced_before_it_is_created() -> None:
    plan = plan_trial(LOST_AGENT).plan
    after = status(LOST_AGENT)

    assert plan.actions == ()
    assert (after.agent_incarnation, after.adjudicator_incarnation) == (2, 1)
    assert after.infra_restarts == 1
    assert after.reason(TrialCondition.RUNNING) == Reason.POD_REPLACED
    assert plan.measurements == (
        PodReplaced(role=Role.AGENT, fault="infrastructure", cause="drain"),
    )


def test_grader_that_the_candidate_brings_down_uses_up_no_retry() -> None:
    view = pair("at work", "out of memory", SPENT, results=MISSING)
    last = replace(
        view,
        adjudicator=view.adjudicator._replace(incarnation=TrialSettings().adjudicator_lives),
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
    (put,) = plan_trial(
        pair("out of memory", "at work", AT_WORK, results=MISSING, queue=OPEN)
    ).plan.actions

    assert isinstance(put, PutObject)
    assert put.mode == "adopt"
    assert put.key.endswith("queue/00000004")


def test_trial_that_is_given_up_leaves_an_invalid_result() -> None:
    (put,) = plan_trial(LOST_TOO_OFTEN).plan.actions

    assert isinstance(put, PutObject)
    assert put.mode == "create"
    assert TrialResults.from_bytes(put.data).valid is False
    assert status(LOST_TOO_OFTEN).failure_mode == "infra_error"


def test_reason_of_a_refusal_stays() -> None:
    complete = status(pair("refused", "at work", AT_WORK, results=MISSING)).condition(
        TrialCondition.COMPLETE
    )

    assert complete is not None
    assert complete.reason == Reason.USER_NAMESPACE_NOT_ENFORCED


def test_released_pair_comes_back_under_new_names_after_a_while() -> None:
    after = status(HALF_PAIR)

    assert (after.agent_incarnation, after.adjudicator_incarnation) == (2, 2)
    assert after.released_attempts == 1
    assert after.infra_restarts == 0
    assert after.not_before is not None
    assert NOW + 15 <= after.not_before <= NOW + 31


def test_pods_that_do_not_start_count_as_a_failure() -> None:
    after = status(pair("starting for long", "starting for long", results=MISSING))

    assert after.infra_restarts == 1
    assert after.reason(TrialCondition.ADMITTED) == Reason.IMAGE_PULL


def test_suspending_counts_nothing_and_lets_the_recorder_finish() -> None:
    after = status(pair("at work", "at work", AT_WORK, run=SUSPEND))
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
    (sweep,) = plan_trial(
        pair("at work", "at work", AT_WORK, run=RunIntent(cancel=True, suspend=False))
    ).plan.actions

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
    (ended,) = plan_trial(SCORED).plan.measurements

    assert isinstance(ended, TrialEnded)
    assert (ended.kind, ended.phase, ended.failure_mode) == ("attempt", "Succeeded", "none")


def test_hint_fills_the_status() -> None:
    after = status(SCORED)

    assert (after.units_cleared, after.units_total, after.resolved) == (3, 3, True)
    assert after.results is not None
    assert after.completion_time == NOW


def test_wake_is_the_next_deadline() -> None:
    assert plan_trial(pair("starting", "unscheduled")).plan.wake_after == 50
    assert plan_trial(pair("starting", "starting")).plan.wake_after == 890


def test_queue_without_snapshots_can_be_closed_too() -> None:
    queue = QueueFact(next_number=0, end=None, cursor=OPEN.cursor)
    view = pair("killed", "at work", AT_WORK, results=MISSING, queue=queue)

    (put,) = plan_trial(view).plan.actions

    assert isinstance(put, PutObject)
    assert put.key.endswith("queue/00000000")
