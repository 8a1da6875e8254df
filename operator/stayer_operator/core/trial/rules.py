"""The life of a Trial: one ordered table of rules. The first that has something to say decides.

                      pair released, run suspended
                 ┌───────────────────────────────────┐
                 ▼                                   │
    Pending ──► (pods created) ──► Running ──► Draining ──► Succeeded | Failed
       │         Admitted            │ ▲          │ ▲
       │                             └─┘          └─┘
       │                        pod replaced   adjudicator replaced
       └──────────────────────────┴───────────────┴───────► Cancelled | Failed

"Admitted" is written only together with something else; an undisturbed trial is seen to go from
Pending to Running. Every write of a next incarnation comes before the POST of its pod, which a
later plan sends when it sees the write: one POST answered 201 per (trial, role, incarnation).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from stayer_evaluator.records.outcomes import FailureMode, Role
from stayer_operator.api.conditions import Reason, TrialCondition, TrialPhase
from stayer_operator.api.wording import counted
from stayer_operator.core.failures import Cause, Fault, PodEnd
from stayer_operator.core.plan import CreatePod, DeletePod, Plan, PodReplaced
from stayer_operator.core.pods.adjudicator import build_adjudicator_pod
from stayer_operator.core.pods.agent import build_agent_pod
from stayer_operator.core.trial import evidence, gang, outcomes
from stayer_operator.core.trial.backoff import backoff
from stayer_operator.core.trial.view import NEW, OVER, UNKNOWN, RoleView, TrialView

_UNFINISHED = (
    TrialPhase.PENDING,
    TrialPhase.ADMITTED,
    TrialPhase.RUNNING,
    TrialPhase.DRAINING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A named rule: None when it does not apply. `leads_to`: phases that its status may have;
    empty for rules that write none.
    """

    name: str
    decide: Callable[[TrialView], Plan | None]
    leads_to: tuple[TrialPhase, ...] = ()


def deleted(view: TrialView) -> Plan | None:
    """The Trial is being deleted in the foreground: its pods go quickly."""
    return _swept(view) if view.trial.deleted else None


def finished(view: TrialView) -> Plan | None:
    """Terminal: what is left of its pods goes, and nothing is ever created again."""
    return _swept(view) if view.is_terminal else None


def _swept(view: TrialView) -> Plan:
    """Look again while there are pods: one may have been created while the others were deleted."""
    wake_after = view.settings.recheck if view.pods else None
    return Plan(actions=outcomes.sweep(view), wake_after=wake_after)


def orphaned(view: TrialView) -> Plan | None:
    """Its run is not there: garbage collection deletes the Trial, or the run is yet to be seen."""
    return Plan(wake_after=view.settings.recheck) if view.run is None else None


def result_recorded(view: TrialView) -> Plan | None:
    """`results.json` exists: the trial has ended, even if a cancel came meanwhile."""
    if (hint := evidence.results_hint(view)) is not None:
        return outcomes.from_hint(view, hint)
    if view.results is not None and view.results.found is not None:
        return outcomes.from_results(view, view.results.found)
    return None


def cancelled(view: TrialView) -> Plan | None:
    """The run is cancelled."""
    if view.run is None or not view.run.cancel:
        return None
    status = outcomes.observed_status(view)
    status = status._replace(failure_mode=FailureMode.CANCELLED.value)
    return outcomes.complete(
        view, status, Reason.CANCELLED, "the run was cancelled", actions=outcomes.sweep(view)
    )


def unread(view: TrialView) -> Plan | None:
    """Evidence is missing that gather has to read first."""
    return Plan(wake_after=outcomes.SOON) if evidence.needs(view) else None


def refused(view: TrialView) -> Plan | None:
    """A sidecar found that isolation is not enforced: another try would find the same."""
    refusal = evidence.refused(view)
    if refusal is None:
        return None
    return outcomes.give_up(view, refusal.reason, refusal.message)


def superseded(view: TrialView) -> Plan | None:
    """Pods of earlier incarnations still live, or one that has not begun and is not needed any
    more: they are asked to go.

    The pods of a suspended run keep their own grace, for a last snapshot.
    """
    unwanted = [pod for role in view.roles for pod in role.older]
    if not view.agent_needed and view.agent is not None and view.agent.pod is not None:
        # An older recorder's word came late. A successor at work finds the end itself, and goes.
        unwanted += [view.agent.pod] if view.agent.pod.phase == "Pending" else []
    asked = [pod for pod in unwanted if pod.deletion is None and not view.is_over(pod)]
    if not asked:
        return None
    reason = view.status.reason(TrialCondition.ADMITTED)
    grace = None if reason == Reason.RUN_SUSPENDED else view.settings.end_grace
    return Plan(
        actions=tuple(
            DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_seconds=grace)
            for pod in asked
        ),
        wake_after=view.settings.recheck,
    )


def agent_ended(view: TrialView) -> Plan | None:
    """The queue has its `end` entry: what is left is to adjudicate the rest of it."""
    if not view.agent_needed:
        return None
    if (hint := evidence.end_hint(view)) is not None:
        mode, message = hint.failure_mode or FailureMode.NONE, hint.message
        rounds, snapshots = hint.rounds, hint.snapshots_taken
    elif view.queue is not None and view.queue.end is not None:
        end = view.queue.end
        mode, message, rounds, snapshots = end.failure_mode, end.message, None, None
        rounds = end.episode.round
    else:
        return None
    status = outcomes.observed_status(view)
    status = outcomes.judge(view, status, TrialCondition.AGENT_ENDED, True, Reason.AGENT_ENDED)
    status = status._replace(
        failure_mode=mode.value,
        message=message or None,
        round=rounds if rounds is not None else status.round,
        snapshots_taken=snapshots if snapshots is not None else status.snapshots_taken,
    )
    return outcomes.write_status(view, status)


def suspended(view: TrialView) -> Plan | None:
    """The run is suspended: as with a Job, active pods go and come back later. The next recorder
    resumes from the last snapshot, the next adjudicator from the verdicts.
    """
    if view.run is None or not view.run.suspend:
        return None
    if not view.has_pods and TrialCondition.ADMITTED not in view.held:
        return None
    message = "the run is suspended; its pods are created again when it goes on"
    status = outcomes.observed_status(view)
    return outcomes.release(view, status, Reason.RUN_SUSPENDED, message, 0)


def agent_at_fault(view: TrialView) -> Plan | None:
    """The agent brought its pod down and no recorder is left to say so: the operator closes the
    queue, and what is in it is adjudicated.
    """
    for role, end in evidence.failed_roles(view):
        if role.role is Role.AGENT and end.fault is Fault.AGENT and view.life(role) is OVER:
            return outcomes.end_entry(view, end)
    return None


def agent_lost(view: TrialView) -> Plan | None:
    """Infrastructure took the agent pod: go on in a new one, unless the run wants otherwise.
    To begin again is the run's doing: a new Trial, so that the evidence of both stays whole.
    """
    for role, end in evidence.failed_roles(view):
        if role.role is not Role.AGENT:
            continue
        if view.spec.on_agent_loss == "resume":
            return _replace_or_give_up(view, role, end)
        message = f"{view.pod_name(role)}: {end.message} (onAgentLoss: {view.spec.on_agent_loss})"
        return outcomes.give_up(view, Reason.AGENT_LOST, message)
    return None


def adjudicator_lost(view: TrialView) -> Plan | None:
    """The adjudicator pod is gone without a result: the next one continues from the verdicts.

    A candidate that brings its grader down (own limits of the task container) uses up none of the
    trial's infraRetries, else it could turn its verdicts into an infra_error. The adjudicator gives
    each snapshot two starts and goes on, so that this ends.
    """
    for role, end in evidence.failed_roles(view):
        if role.role is not Role.ADJUDICATOR:
            continue
        if end.fault is Fault.AGENT and role.incarnation < view.settings.adjudicator_lives:
            return outcomes.replace_pod(view, role, end, counted=False)
        return _replace_or_give_up(view, role, end)
    return None


def _replace_or_give_up(view: TrialView, role: RoleView, end: PodEnd) -> Plan:
    if view.status.infra_restarts >= view.spec.infra_retries:
        message = (
            f"{view.pod_name(role)}: {end.message} "
            f"(infraRetries: {counted(view.spec.infra_retries, 'pod')} replaced already)"
        )
        return outcomes.give_up(view, Reason.INFRASTRUCTURE_FAILED, message)
    return outcomes.replace_pod(view, role, end)


def drain_overdue(view: TrialView) -> Plan | None:
    """The adjudicator did not keep its own limit by far."""
    if not evidence.drain_is_overdue(view):
        return None
    message = "the adjudicator recorded no result within its limit for draining"
    return outcomes.give_up(view, Reason.INFRASTRUCTURE_FAILED, message)


def half_pair(view: TrialView) -> Plan | None:
    """One pod holds a node and its partner gets none: both go, so that they block nobody."""
    verdict = gang.verdict(view)
    return _release(view, Reason.PAIR_RELEASED, verdict.trouble) if verdict.is_half else None


def unschedulable(view: TrialView) -> Plan | None:
    """The pair fits nowhere: others may try."""
    verdict = gang.verdict(view)
    if not verdict.is_unschedulable:
        return None
    return _release(view, Reason.UNSCHEDULABLE, verdict.trouble)


def _release(view: TrialView, reason: Reason, message: str) -> Plan:
    status = outcomes.observed_status(view)
    count = status.released_attempts + 1
    settings = view.settings
    wait = backoff(view.trial.uid, count, settings.release_backoff, settings.release_backoff_limit)
    status = status._replace(released_attempts=count)
    return outcomes.release(view, status, reason, message, wait)


def late_start(view: TrialView) -> Plan | None:
    """Pods have nodes and do not start: image pull, seeding. That is a failure, not a wait."""
    verdict = gang.verdict(view)
    if not verdict.is_late_start:
        return None
    if view.status.infra_restarts >= view.spec.infra_retries:
        message = f"{verdict.trouble} (infraRetries: {view.spec.infra_retries})"
        return outcomes.give_up(view, Reason.INFRASTRUCTURE_FAILED, message)
    status = view.status._replace(infra_restarts=view.status.infra_restarts + 1)
    reason = Reason.IMAGE_PULL if "Image" in verdict.trouble else Reason.PAIR_RELEASED
    plan = _release(replace(view, status=status), reason, verdict.trouble)
    late = next(role for role in view.needed if not view.has_started(role))
    counted = PodReplaced(
        role=late.role, fault=Fault.INFRASTRUCTURE.value, cause=Cause.START_FAILED.value
    )
    return replace(plan, measurements=(counted,))


def unknown_history(view: TrialView) -> Plan | None:
    """Before this process looked, somebody may have created a pod that is gone by now. A name is
    never used twice, so these incarnations are passed over, uncounted.
    """
    unknown = [role for role in view.needed if view.life(role) is UNKNOWN]
    if not unknown or not _may_create(view):
        return None
    status = outcomes.observed_status(view)
    for role in unknown:
        status = outcomes.next_incarnation(status, role.role)
    # Another operator may be about to create them; it shows before we go on.
    status = status._replace(not_before=view.now + view.settings.settle)
    return outcomes.write_status(view, status, wake_after=view.settings.settle)


def pods_missing(view: TrialView) -> Plan | None:
    """Create what is missing of the pair: creating the pods is the admission."""
    missing = [role for role in view.needed if view.life(role) is NEW]
    if not missing or not _may_create(view):
        return None
    if any(not view.is_over(pod) for role in view.needed for pod in role.older):
        return Plan(wake_after=view.settings.recheck)  # at most one live pod a role
    wait = (view.status.not_before or 0) - view.now
    if wait > 0:
        return Plan(wake_after=wait)
    return Plan(
        actions=tuple(CreatePod(manifest=_manifest(view, role)) for role in missing),
        wake_after=view.settings.unseen,
    )


def _may_create(view: TrialView) -> bool:
    """Admitted by admission now, or earlier: a trial keeps its place while pods are replaced."""
    held = view.has_pods or TrialCondition.ADMITTED in view.held
    suspended = view.run is not None and view.run.suspend
    return not suspended and (held or view.admitted)


def _manifest(view: TrialView, role: RoleView) -> dict[str, object]:
    build = build_agent_pod if role.role is Role.AGENT else build_adjudicator_pod
    return build(view.pod_settings, view.identity, view.spec, role.incarnation)


def started(view: TrialView) -> Plan | None:
    """All pods that are needed run for the first time (or again after a release)."""
    if TrialCondition.RUNNING in view.held:
        return None
    if not all(view.is_running(role) for role in view.needed):
        return None
    return outcomes.write_status(view, outcomes.observed_status(view))


def progressed(view: TrialView) -> Plan | None:
    """Sidecars report something new: told at most once a minute."""
    if TrialCondition.RUNNING not in view.held:
        return None
    if not outcomes.has_new_counts(view):
        return None
    if view.written_at is not None:
        wait = view.written_at + view.settings.progress - view.now
        if wait > 0:
            return Plan(wake_after=min(wait, _deadline(view)))
    return outcomes.write_status(view, outcomes.observed_status(view))


def waiting_for_admission(view: TrialView) -> Plan | None:
    """No pods, and none to be created yet: admission wakes the trial."""
    if view.has_pods or TrialCondition.ADMITTED in view.held:
        return None
    return Plan(wake_after=None)


def waiting(view: TrialView) -> Plan | None:
    """All is well: look again at the next deadline."""
    return Plan(wake_after=_deadline(view))


def _deadline(view: TrialView) -> float:
    """Seconds until the first deadline of the pods that are there."""
    now, settings = view.now, view.settings
    limits = [evidence.drain_limit(view), gang.verdict(view).deadline]
    for role in view.needed:
        pod = role.pod
        if pod is None:
            if role.posted_at is not None:
                limits.append(role.posted_at + settings.unseen)
            continue
        limits.append(evidence.working_limit(view, role))
        if pod.deletion is not None and pod.deletion + settings.lost_node > now:
            limits.append(pod.deletion + settings.lost_node)
    ahead = [limit - now for limit in limits if limit is not None]
    return max(min(ahead, default=settings.recheck), 1.0)


RULES: tuple[Rule, ...] = (
    Rule(name="deleted", decide=deleted),
    Rule(name="finished", decide=finished),
    Rule(name="orphaned", decide=orphaned),
    Rule(
        name="result_recorded",
        decide=result_recorded,
        leads_to=(TrialPhase.SUCCEEDED, TrialPhase.FAILED),
    ),
    Rule(name="cancelled", decide=cancelled, leads_to=(TrialPhase.CANCELLED,)),
    Rule(name="unread", decide=unread),
    Rule(name="refused", decide=refused, leads_to=(TrialPhase.FAILED,)),
    Rule(name="superseded", decide=superseded),
    Rule(
        name="agent_ended",
        decide=agent_ended,
        leads_to=(TrialPhase.DRAINING, TrialPhase.PENDING),
    ),
    Rule(name="suspended", decide=suspended, leads_to=(TrialPhase.PENDING,)),
    Rule(name="agent_at_fault", decide=agent_at_fault),
    Rule(name="agent_lost", decide=agent_lost, leads_to=(*_UNFINISHED, TrialPhase.FAILED)),
    Rule(
        name="adjudicator_lost",
        decide=adjudicator_lost,
        leads_to=(*_UNFINISHED, TrialPhase.FAILED),
    ),
    Rule(name="drain_overdue", decide=drain_overdue, leads_to=(TrialPhase.FAILED,)),
    Rule(name="half_pair", decide=half_pair, leads_to=(TrialPhase.PENDING,)),
    Rule(name="unschedulable", decide=unschedulable, leads_to=(TrialPhase.PENDING,)),
    Rule(
        name="late_start",
        decide=late_start,
        leads_to=(TrialPhase.PENDING, TrialPhase.FAILED),
    ),
    Rule(name="unknown_history", decide=unknown_history, leads_to=_UNFINISHED),
    Rule(name="pods_missing", decide=pods_missing),
    Rule(name="started", decide=started, leads_to=(TrialPhase.RUNNING, TrialPhase.DRAINING)),
    Rule(name="progressed", decide=progressed, leads_to=(TrialPhase.RUNNING, TrialPhase.DRAINING)),
    Rule(name="waiting_for_admission", decide=waiting_for_admission),
    Rule(name="waiting", decide=waiting),
)
