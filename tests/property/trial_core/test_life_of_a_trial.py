"""What holds of every plan for every view, likely or not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import event, given

from makers_any_views import views
from makers_views import make_results, young_pod
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import decode_entry
from stayer_operator.api import names
from stayer_operator.api.conditions import TERMINAL_TRIAL_PHASES, TrialCondition, TrialPhase
from stayer_operator.core.plan import (
    CreatePod,
    DeletePod,
    DeletePods,
    Plan,
    PutObject,
)
from stayer_operator.core.trial import evidence
from stayer_operator.core.trial.evidence import Need
from stayer_operator.core.trial.planner import plan_trial
from stayer_operator.core.trial.rules import RULES
from stayer_operator.core.trial.status import TrialStatus, parse_trial_status
from stayer_operator.core.trial.view import Life, QueueFact, ResultsFact, RoleView, TrialView

# What the diagram in rules.py shows. Staying is always allowed.
UNFINISHED = {TrialPhase.PENDING, TrialPhase.ADMITTED, TrialPhase.RUNNING, TrialPhase.DRAINING}
TRANSITIONS = {
    TrialPhase.PENDING: UNFINISHED | TERMINAL_TRIAL_PHASES,
    TrialPhase.ADMITTED: UNFINISHED | TERMINAL_TRIAL_PHASES,
    TrialPhase.RUNNING: {TrialPhase.PENDING, TrialPhase.DRAINING} | TERMINAL_TRIAL_PHASES,
    TrialPhase.DRAINING: {TrialPhase.PENDING} | TERMINAL_TRIAL_PHASES,
}


def written(plan: Plan) -> TrialStatus | None:
    return parse_trial_status(plan.status.status) if plan.status is not None else None


def read(view: TrialView) -> TrialView:
    """With the evidence that it needs, as gather would add it: there is none."""
    while wanted := evidence.needs(view):
        if Need.RESULTS in wanted:
            view = replace(view, results=ResultsFact(found=None))
        if Need.QUEUE in wanted:
            view = replace(view, queue=QueueFact(next_number=3, end=None, cursor=EpisodeCursor()))
    return view


@given(views())
def test_planning_is_total_and_says_the_same_twice(view: TrialView) -> None:
    first, second = plan_trial(view), plan_trial(view)

    event(first.rule)
    assert first == second
    assert first.rule in {rule.name for rule in RULES}


@given(views())
def test_planning_again_after_applying_settles(view: TrialView) -> None:
    view = read(view)
    rules = []

    for _ in range(12):
        decision = plan_trial(view)
        rules.append(decision.rule)
        if not decision.plan.actions and decision.plan.status is None:
            return
        view = read(applied(view, decision.plan))

    raise AssertionError(f"does not settle: {rules}")


@given(views())
def test_terminal_trial_only_gives_back_its_pods(view: TrialView) -> None:
    plan = plan_trial(view).plan

    if view.is_terminal:
        assert plan.status is None
        assert all(isinstance(action, DeletePod | DeletePods) for action in plan.actions)


@given(views())
def test_pod_is_created_under_a_new_name_and_alone_in_its_role(view: TrialView) -> None:
    plan = plan_trial(view).plan

    for action in plan.actions:
        if isinstance(action, CreatePod):
            role = role_of(view, action)
            assert view.life(role) is Life.NEW
            assert action.manifest["metadata"]["name"] == view.pod_name(role)
            assert not [pod for pod in role.older if not view.is_over(pod)]
            assert not view.trial.deleted
            assert view.run is not None
            assert not view.run.cancel
            assert not view.run.suspend


@given(views())
def test_next_incarnation_is_written_before_its_pod_is_created(view: TrialView) -> None:
    plan = plan_trial(view).plan
    status = written(plan)

    if status is None or not view.spec.infra_retries >= view.status.infra_restarts:
        return
    assert not [action for action in plan.actions if isinstance(action, CreatePod)]
    assert status.infra_restarts <= view.spec.infra_retries
    for role in view.roles:
        assert 0 <= status.incarnation(role.role) - role.incarnation <= 1


@given(views())
def test_agent_has_ended_only_where_the_queue_or_the_result_says_so(view: TrialView) -> None:
    status = written(plan_trial(view).plan)
    before = view.status.holds(TrialCondition.AGENT_ENDED)

    if status is not None and status.holds(TrialCondition.AGENT_ENDED) and not before:
        said = evidence.end_hint(view) or evidence.results_hint(view)
        assert said or has_results(view) or (view.queue is not None and view.queue.end is not None)


@given(views())
def test_trial_succeeds_only_with_a_valid_result(view: TrialView) -> None:
    status = written(plan_trial(view).plan)

    if status is not None and status.phase is TrialPhase.SUCCEEDED:
        hint = evidence.results_hint(view)
        assert hint is not None or has_results(view)
        assert hint is None or hint.valid is not False


@given(views())
def test_evidence_is_only_ever_added(view: TrialView) -> None:
    keys = TrialKeys(view.spec.prefix)

    for action in plan_trial(view).plan.actions:
        if not isinstance(action, PutObject):
            continue
        assert action.mode in ("create", "adopt")
        if action.key == keys.results:
            assert view.results == ResultsFact(found=None)
            assert not TrialResults.from_bytes(action.data).valid
        else:
            assert view.queue is not None
            assert view.queue.end is None
            entry = decode_entry(action.data, view.queue.next_number)
            assert isinstance(entry, EndEntry)
            assert action.key == keys.queue(entry.number)


@given(views())
def test_nothing_sleeps_for_ever(view: TrialView) -> None:
    decision = plan_trial(view)
    plan = decision.plan

    if view.is_terminal or view.trial.deleted:
        return
    waits_for_admission = decision.rule == "waiting_for_admission"
    assert plan.actions or plan.wake_after is not None or waits_for_admission
    if waits_for_admission:
        left = [pod for pod in view.pods if not (pod.deletion or view.is_over(pod))]
        # The recorder of an episode that has ended finds the end in the queue, and goes.
        assert all(pod.role is Role.AGENT and pod.phase == "Running" for pod in left)
        assert not left or not view.agent_needed


@given(views())
def test_nothing_spins(view: TrialView) -> None:
    plan = plan_trial(read(view)).plan

    if not plan.actions and plan.status is None and plan.wake_after is not None:
        assert plan.wake_after >= 0.01


@given(views())
def test_every_transition_is_in_the_table(view: TrialView) -> None:
    decision = plan_trial(view)
    status = written(decision.plan)

    if status is not None:
        rule = next(rule for rule in RULES if rule.name == decision.rule)
        assert status.phase in rule.leads_to
        assert status.phase in TRANSITIONS[view.status.phase] | {view.status.phase}


@given(views())
def test_status_stays_small(view: TrialView) -> None:
    plan = plan_trial(view).plan

    if plan.status is not None:
        assert len(json.dumps(plan.status.status)) <= 4096


def role_of(view: TrialView, action: CreatePod) -> RoleView:
    label = action.manifest["metadata"]["labels"][names.LABEL_ROLE]
    return next(role for role in view.roles if names.ROLE_LABELS[role.role] == label)


def has_results(view: TrialView) -> bool:
    return view.results is not None and view.results.found is not None


def applied(view: TrialView, plan: Plan) -> TrialView:
    """The view after the plan was carried out and seen, in no time."""
    for action in plan.actions:
        view = done(view, action)
    if plan.status is None:
        return view
    status = parse_trial_status(plan.status.status)
    changed = {
        field: renewed(role, status)
        for field, role in (("agent", view.agent), ("adjudicator", view.adjudicator))
        if role is not None
    }
    trial = replace(view.trial, status=plan.status.status)
    return replace(view, status=status, trial=trial, written_at=view.now, **changed)


def renewed(role: RoleView, status: TrialStatus) -> RoleView:
    """The role under the incarnation of a new status."""
    incarnation = status.incarnation(role.role)
    if incarnation == role.incarnation:
        return role
    older = (*role.older, *((role.pod,) if role.pod else ()))
    return RoleView(role=role.role, incarnation=incarnation, older=older)


def done(view: TrialView, action: Any) -> TrialView:
    if isinstance(action, CreatePod):
        role = role_of(view, action)
        pod = young_pod(role.role, role.incarnation)._replace(created=view.now)
        return with_role(view, role._replace(pod=pod, posted_at=view.now))
    if isinstance(action, PutObject):
        if action.key == TrialKeys(view.spec.prefix).results:
            return replace(view, results=ResultsFact(found=make_results(valid=False)))
        assert view.queue is not None
        end = decode_entry(action.data, view.queue.next_number)
        assert isinstance(end, EndEntry)
        return replace(view, queue=replace(view.queue, end=end))
    if isinstance(action, DeletePod | DeletePods):
        for role in view.roles:
            view = with_role(view, without_pods(role, action))
        return view
    raise AssertionError(f"a trial never does this: {action}")


def without_pods(role: RoleView, action: DeletePod | DeletePods) -> RoleView:
    def goes(uid: str) -> bool:
        return isinstance(action, DeletePods) or action.uid == uid

    older = tuple(pod for pod in role.older if not goes(pod.uid))
    if role.pod is not None and goes(role.pod.uid):
        return role._replace(pod=None, last_seen=role.pod, older=older)
    return role._replace(older=older)


def with_role(view: TrialView, role: RoleView) -> TrialView:
    if role.role is Role.AGENT:
        return replace(view, agent=role)
    return replace(view, adjudicator=role)
