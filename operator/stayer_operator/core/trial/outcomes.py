"""Status of a trial as it follows from what is observed, and the plans that several rules share."""

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from stayer_evaluator.records.outcomes import FailureMode, Role
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.storage.documents import compress
from stayer_evaluator.storage.layout import TrialKeys
from stayer_operator.api.conditions import Reason, TrialCondition
from stayer_operator.core.failures import PodEnd
from stayer_operator.core.observed import PodView
from stayer_operator.core.plan import (
    Action,
    DeletePod,
    DeletePods,
    Event,
    Measurement,
    Plan,
    PodReplaced,
    PutObject,
    StatusWrite,
    TrialEnded,
)
from stayer_operator.core.trial import evidence
from stayer_operator.core.trial.backoff import backoff
from stayer_operator.core.trial.status import (
    COUNTS,
    MESSAGE_LIMIT,
    Judgement,
    TrialStatus,
    judge_all,
    render_trial_status,
)
from stayer_operator.core.trial.view import RoleView, TrialView

SOON = 0.0  # plan again at once: what was done shows in the store, where nobody watches


def observed_status(view: TrialView) -> TrialStatus:
    """The recorded status, brought up to what can be seen now. Nothing here decides anything."""
    status, agent = view.status, view.agent
    found: list[Judgement] = []
    if any(role.pod is not None for role in view.needed):
        found.append(_CREATED)
    if all(role.pod and role.pod.scheduled_since is not None for role in view.needed):
        found.append(_SCHEDULED)
    started = status.start_time
    if all(view.is_running(role) for role in view.needed):
        found.append(_RUNNING)
        started = started or math.floor(view.now)
    return status._replace(
        observed_generation=view.trial.generation,
        conditions=judge_all(
            status.conditions, found, now=view.now, generation=view.trial.generation
        ),
        adjudicator_incarnation=view.adjudicator.incarnation,
        agent_incarnation=agent.incarnation if agent else status.agent_incarnation,
        adjudicator_pod=_newest(view.adjudicator, status.adjudicator_pod),
        agent_pod=_newest(agent, status.agent_pod) if agent else None,
        start_time=started,
        **_counts(view),
    )


_CREATED = Judgement(TrialCondition.ADMITTED, True, Reason.PODS_CREATED)
_SCHEDULED = Judgement(TrialCondition.SCHEDULED, True, Reason.PODS_SCHEDULED)
_RUNNING = Judgement(TrialCondition.RUNNING, True, Reason.PODS_RUNNING)


def has_new_counts(view: TrialView) -> bool:
    """Progress reports tell a number that the status does not."""
    if view.progress is None:
        return False
    counts = zip(_counts_of(view.progress), _counts_of(view.status), strict=True)
    return any(told is not None and told != known for told, known in counts)


_counts_of = attrgetter(*COUNTS)


def _counts(view: TrialView) -> dict[str, Any]:
    if view.progress is None:
        return {}
    told = zip(COUNTS, _counts_of(view.progress), strict=True)
    return {name: value for name, value in told if value is not None}


def _newest(role: RoleView, recorded: str | None) -> str | None:
    return role.pod.name if role.pod is not None else recorded


def judge(
    view: TrialView,
    status: TrialStatus,
    type_: TrialCondition,
    holds: bool,
    reason: Reason,
    message: str = "",
) -> TrialStatus:
    """The status with that condition, as of now."""
    return status.judged(
        type_, holds, reason, message, now=view.now, generation=view.trial.generation
    )


def write_status(
    view: TrialView,
    status: TrialStatus,
    *,
    actions: Sequence[Action] = (),
    events: Sequence[Event] = (),
    measurements: Sequence[Measurement] = (),
    wake_after: float | None = None,
) -> Plan:
    """Actions, then this status, whole."""
    trial, message = view.trial, status.message
    if message is not None and not 0 < len(message) <= MESSAGE_LIMIT:
        status = status._replace(message=message[:MESSAGE_LIMIT] or None)
    return Plan(
        actions=tuple(actions),
        status=StatusWrite(
            kind="Trial",
            namespace=trial.namespace,
            name=trial.name,
            uid=trial.uid,
            resource_version=trial.resource_version,
            status=render_trial_status(status),
        ),
        events=tuple(events),
        measurements=tuple(measurements),
        # A written status comes back by the watch; should it not, nothing may sleep for ever.
        wake_after=view.settings.recheck if wake_after is None else wake_after,
    )


def complete(
    view: TrialView,
    status: TrialStatus,
    reason: Reason,
    message: str,
    *,
    actions: Sequence[Action] = (),
) -> Plan:
    """The terminal status. The pods are swept once it is written, as their messages go with
    them; cancelling sweeps them at once.
    """
    done = judge(view, status, TrialCondition.COMPLETE, True, reason, message)
    done = done._replace(completion_time=math.floor(view.now), message=message or status.message)
    phase = done.phase.value
    started = done.start_time if done.start_time is not None else view.trial.created
    warning = reason not in (Reason.RESULT_RECORDED, Reason.CANCELLED)
    event = Event(
        type="Warning" if warning else "Normal",
        reason=reason.value,
        message=message or phase,
    )
    ended = TrialEnded(
        kind=view.spec.kind.value,
        phase=phase,
        failure_mode=done.failure_mode or FailureMode.NONE.value,
        seconds=max(0.0, view.now - started),
    )
    return write_status(view, done, actions=actions, events=[event], measurements=[ended])


def from_hint(view: TrialView, hint: TerminationMessage) -> Plan:
    """End a trial by the adjudicator's termination message."""
    status = observed_status(view)
    fields = (
        "snapshots_taken",
        "snapshots_adjudicated",
        "units_cleared",
        "units_total",
        "regressions",
        "recoveries",
        "resolved",
    )
    told = {name: value for name in fields if (value := getattr(hint, name)) is not None}
    if hint.rounds is not None:
        told["round"] = hint.rounds
    mode = hint.failure_mode.value if hint.failure_mode else status.failure_mode
    status = status._replace(**told, failure_mode=mode or FailureMode.NONE.value)
    message = hint.message or "; ".join(hint.problems)
    return _recorded(view, status, hint.valid is not False, message)


def from_results(view: TrialView, results: TrialResults) -> Plan:
    """End a trial by its `results.json`."""
    status = observed_status(view)
    metrics = results.metrics
    if metrics is not None:
        status = status._replace(
            resolved=metrics.resolved,
            units_cleared=metrics.units_cleared,
            units_total=metrics.units_total,
            regressions=metrics.reg_events,
            recoveries=metrics.recoveries,
            round=metrics.rounds,
        )
    status = status._replace(
        failure_mode=results.failure_mode.value,
        snapshots_taken=results.snapshots_taken,
        snapshots_adjudicated=results.snapshots_adjudicated,
    )
    return _recorded(view, status, results.valid, results.message)


def _recorded(view: TrialView, status: TrialStatus, valid: bool, message: str) -> Plan:
    status = status._replace(results=TrialKeys(view.spec.prefix).results)
    if view.agent is not None:
        status = judge(view, status, TrialCondition.AGENT_ENDED, True, Reason.AGENT_ENDED)
    if valid:
        return complete(view, status, Reason.RESULT_RECORDED, message)
    status = status._replace(failure_mode=FailureMode.INFRA_ERROR.value)
    return complete(view, status, _why_invalid(view), message or "no valid result")


def _why_invalid(view: TrialView) -> Reason:
    """The reason as `give_up` had it, should it have died between result and status."""
    if (refusal := evidence.refused(view)) is not None:
        return refusal.reason
    lost = any(role.role is Role.AGENT for role, _ in evidence.failed_roles(view))
    if lost and view.spec.on_agent_loss != "resume":
        return Reason.AGENT_LOST
    return Reason.INFRASTRUCTURE_FAILED


def give_up(view: TrialView, reason: Reason, message: str) -> Plan:
    """Failed: record an invalid result where no adjudicator can, then say so.

    Conditional: if `results.json` is there by now, the plan ends there and the next one reads it.
    """
    status = observed_status(view)._replace(failure_mode=FailureMode.INFRA_ERROR.value)
    keys, spec, trial = TrialKeys(view.spec.prefix), view.spec, view.trial
    results = TrialResults(
        kind=spec.kind,
        namespace=trial.namespace,
        run=spec.run,
        trial=trial.name,
        task=spec.task,
        task_digest=spec.task_digest,
        agent=spec.agent,
        model=spec.model,
        loop=spec.loop,
        attempt=spec.attempt,
        valid=False,
        failure_mode=FailureMode.INFRA_ERROR,
        message=message,
        metrics=None,
        snapshots_taken=status.snapshots_taken or 0,
        snapshots_adjudicated=status.snapshots_adjudicated or 0,
        infra_restarts=status.infra_restarts,
        test_visibility=spec.test_visibility,
        network=spec.network,
        started=status.start_time,
        ended=math.floor(view.now),
    )
    put = PutObject(key=keys.results, data=results.to_bytes(), mode="create")
    return complete(view, status._replace(results=keys.results), reason, message, actions=[put])


def end_entry(view: TrialView, end: PodEnd) -> Plan:
    """Create the `end` entry that the recorder could not: the agent brought its pod down.

    Should another entry take the number first, the next look at the queue finds it.
    """
    queue = view.queue
    if queue is None or end.failure_mode is None:
        return Plan(wake_after=view.settings.recheck)
    entry = EndEntry(
        number=queue.next_number,
        writer=None,
        time=math.floor(view.now),
        failure_mode=end.failure_mode,
        message=end.message,
        episode=queue.cursor,
    )
    key = TrialKeys(view.spec.prefix).queue(queue.next_number)
    return Plan(actions=(PutObject(key=key, data=compress(entry), mode="adopt"),), wake_after=SOON)


def replace_pod(view: TrialView, role: RoleView, end: PodEnd, *, counted: bool = True) -> Plan:
    """Write the next incarnation; its pod is created by a later plan, once this stands."""
    status = observed_status(view)
    count = status.infra_restarts + 1 if counted else status.infra_restarts
    wait = backoff(
        view.trial.uid,
        count - 1,
        view.settings.replace_backoff,
        view.settings.replace_backoff_limit,
    )
    message = f"{view.pod_name(role)}: {end.message}"
    status = next_incarnation(status, role.role)._replace(
        infra_restarts=count,
        not_before=_later(view, wait),
        message=message,
    )
    if status.holds(TrialCondition.RUNNING):
        status = judge(view, status, TrialCondition.RUNNING, True, Reason.POD_REPLACED, message)
    return write_status(
        view,
        status,
        events=[Event(type="Warning", reason=Reason.POD_REPLACED.value, message=message)],
        measurements=[PodReplaced(role=role.role, fault=end.fault.value, cause=end.cause.value)],
    )


def release(
    view: TrialView, status: TrialStatus, reason: Reason, message: str, wait: float
) -> Plan:
    """Give the pods back: the next incarnations are written first, then what is left of these is
    deleted (rule `superseded`), and the trial waits for admission again.
    """
    for role in view.needed:
        status = next_incarnation(status, role.role)
    status = judge(view, status, TrialCondition.ADMITTED, False, reason, message)
    for type_ in (TrialCondition.SCHEDULED, TrialCondition.RUNNING):
        if status.condition(type_) is not None:
            status = judge(view, status, type_, False, reason, message)
    status = status._replace(not_before=_later(view, wait), message=message)
    warning = reason is not Reason.RUN_SUSPENDED
    event = Event(type="Warning" if warning else "Normal", reason=reason.value, message=message)
    return write_status(view, status, events=[event])


def next_incarnation(status: TrialStatus, role: Role) -> TrialStatus:
    """The status with the role's next incarnation."""
    if role is Role.AGENT:
        return status._replace(agent_incarnation=status.agent_incarnation + 1)
    return status._replace(adjudicator_incarnation=status.adjudicator_incarnation + 1)


def _later(view: TrialView, wait: float) -> float | None:
    return view.now + wait if wait > 0 else None


def sweep(view: TrialView) -> tuple[Action, ...]:
    """Delete every pod of the trial soon: one deletecollection; where all are being deleted
    already, by garbage collection for instance, once more with the short grace.
    """
    grace = view.settings.end_grace
    if any(pod.deletion is None for pod in view.pods):
        if _was_swept(view):
            return ()
        return (
            DeletePods(
                namespace=view.trial.namespace,
                trial_uid=view.trial.uid,
                grace_seconds=grace,
            ),
        )
    return hasten(view.pods, view.now, grace)


def _was_swept(view: TrialView) -> bool:
    """Just now: the pods are told to be deleted one after the other, each at its own time."""
    return view.swept_at is not None and view.now - view.swept_at < view.settings.recheck


def hasten(pods: Sequence[PodView], now: float, grace: int) -> tuple[Action, ...]:
    """Repeat with `grace` the delete of pods that were given more and still live."""
    return tuple(
        DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_seconds=grace)
        for pod in pods
        if pod.deletion is not None
        and not pod.is_terminal
        and (pod.deletion_grace or 0) > grace
        and pod.deletion - now > grace
    )
