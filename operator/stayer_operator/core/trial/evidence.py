"""What is known of how a trial's episode and adjudication ended, and what must be read for it."""

from enum import StrEnum

from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.reports import TerminationMessage
from stayer_operator.api.conditions import TrialCondition
from stayer_operator.core import failures
from stayer_operator.core.failures import Cause, Fault, PodEnd
from stayer_operator.core.observed import PodView
from stayer_operator.core.sidecars import Refusal, has_ended, refusal, sidecar_message
from stayer_operator.core.trial import gang
from stayer_operator.core.trial.view import LIVE, OVER, UNKNOWN, RoleView, TrialView, asked_once


class Need(StrEnum):
    """A read of the object store without which a view cannot be judged."""

    RESULTS = "results"
    QUEUE = "queue"


@asked_once
def needs(view: TrialView) -> frozenset[Need]:
    """What gather has to read besides memory. Empty for everything that goes well: the sidecars'
    termination messages tell it. Ending and cancelling never wait for the store.
    """
    if _is_settled(view) or results_hint(view) is not None or not _is_in_trouble(view):
        return _NOTHING
    wanted = set()
    if view.results is None:
        wanted.add(Need.RESULTS)
    if view.queue is None and any(_left_the_queue(view, role) for role, _ in failed_roles(view)):
        wanted.add(Need.QUEUE)
    return frozenset(wanted)


_NOTHING: frozenset[Need] = frozenset()


def _left_the_queue(view: TrialView, role: RoleView) -> bool:
    return role.role is Role.AGENT and view.life(role) is not LIVE


def _is_settled(view: TrialView) -> bool:
    run = view.run
    return (
        view.is_terminal
        or view.trial.deleted
        or run is None
        or run.cancel
        # A refusal is judged before a suspend and ends the trial, which needs the evidence.
        or (run.suspend and view.has_pods and refused(view) is None)
    )


def _is_in_trouble(view: TrialView) -> bool:
    return bool(
        failed_roles(view)
        or refused(view)
        or gang.verdict(view).is_late_start
        or drain_is_overdue(view)
    )


@asked_once
def _has_word(view: TrialView) -> bool:
    """A sidecar has ended: before that it has said nothing, most of a trial's life."""
    for role in view.roles:
        pod, gone = role.pod, role.last_seen
        if (pod is not None and has_ended(pod)) or (gone is not None and has_ended(gone)):
            return True
        if role.older and any(map(has_ended, role.older)):
            return True
    return False


@asked_once
def results_hint(view: TrialView) -> TerminationMessage | None:
    """The adjudicator says that `results.json` is there, and what is in it."""
    if not _has_word(view):
        return None
    for pod in _sightings(view.adjudicator):
        message = sidecar_message(pod, "results")
        if message is not None and (message.valid is not None or message.accepted is not None):
            return message
    return None


@asked_once
def end_hint(view: TrialView) -> TerminationMessage | None:
    """The recorder says that the queue has its `end` entry."""
    if not _has_word(view):
        return None
    for pod in _sightings(view.agent) if view.agent else ():
        if (message := sidecar_message(pod, "end")) is not None:
            return message
    return None


def _sightings(role: RoleView) -> tuple[PodView, ...]:
    """Pods whose word counts: an older incarnation's too, as evidence is never taken back."""
    seen = (role.pod, role.last_seen, *role.older)
    return tuple(pod for pod in seen if pod is not None)


@asked_once
def refused(view: TrialView) -> Refusal | None:
    """A sidecar of a current pod will not work without the isolation that it must prove."""
    if not _has_word(view):
        return None
    for role in view.needed:
        pod = role.pod or role.last_seen
        if pod is not None and (found := refusal(pod)) is not None:
            return found
    return None


@asked_once
def failed_roles(view: TrialView) -> tuple[tuple[RoleView, PodEnd], ...]:
    """Roles whose pod must be replaced, or whose end be recorded, and why; agent first."""
    failed = [(role, end) for role in view.needed if (end := _failure(view, role)) is not None]
    return tuple([(role, end) for role, end in failed if _hint(view, role) is None])


def _hint(view: TrialView, role: RoleView) -> TerminationMessage | None:
    return end_hint(view) if role.role is Role.AGENT else results_hint(view)


def _failure(view: TrialView, role: RoleView) -> PodEnd | None:
    life = view.life(role)
    if life is OVER:
        return view.end_of(role)
    if life is UNKNOWN and TrialCondition.RUNNING in view.held:
        # It ran before this process came, and it is not there.
        return view.end_of(role)
    if role.pod is None or role.pod.deletion is not None:
        return None
    broken = None
    if _has_word(view):
        broken = failures.broken_sidecar(role.pod, view.settings.sidecar_restarts)
    return broken or _stuck(view, role)


def _stuck(view: TrialView, role: RoleView) -> PodEnd | None:
    limit = working_limit(view, role)
    if limit is None or view.now < limit:
        return None
    return PodEnd(
        fault=Fault.INFRASTRUCTURE,
        cause=Cause.STUCK,
        message="its sidecar did not end it within its own limit",
    )


def working_limit(view: TrialView, role: RoleView) -> float | None:
    """When a pod that still works is given up: far beyond the limit that its sidecar keeps.

    The adjudicator of an attempt has none of its own: it may wait as long as the agent works, and
    draining has its limit below.
    """
    if role.pod is None:
        return None
    spec, settings = view.spec, view.settings
    if role.role is Role.AGENT:
        return role.pod.created + settings.starting + spec.agent_seconds + settings.agent_slack
    if view.agent is None:
        return role.pod.created + settings.starting + _drain(view)
    return None


@asked_once
def drain_limit(view: TrialView) -> float | None:
    """When a trial whose agent has ended is given up; the adjudicator's own limit comes first.
    Waiting for a pod, after a suspension for instance, is not draining.
    """
    pod = view.adjudicator.pod
    if TrialCondition.AGENT_ENDED not in view.held or pod is None:
        return None
    ended = view.status.condition(TrialCondition.AGENT_ENDED)
    assert ended is not None, "it is held"
    return max(ended.since, pod.created) + _drain(view)


def drain_is_overdue(view: TrialView) -> bool:
    """Draining is past that limit."""
    limit = drain_limit(view)
    return limit is not None and view.now >= limit


def _drain(view: TrialView) -> float:
    return 2 * view.spec.drain_seconds + view.spec.test_seconds + view.settings.drain_slack
