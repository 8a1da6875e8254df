"""Does a pair start together? Deadlines for pods that hold resources and do not work yet."""

from typing import NamedTuple

from stayer_operator.core import failures
from stayer_operator.core.trial.view import LIVE, NEW, UNKNOWN, RoleView, TrialView, asked_once


class GangVerdict(NamedTuple):
    """What the deadlines say. `deadline` is the next one, None when none is running."""

    is_half: bool = False  # one pod has had a node for too long, the other has none
    is_unschedulable: bool = False  # the whole pair has fitted nowhere for too long
    is_late_start: bool = False  # all have nodes, and not all run
    deadline: float | None = None
    trouble: str = ""


_NO_DEADLINE = GangVerdict()


@asked_once
def verdict(view: TrialView) -> GangVerdict:
    """Judge the pods that still have work to do; those being deleted or over are not judged."""
    roles = [role for role in view.needed if _is_judged(view, role)]
    if not roles or len(roles) < len(view.needed):
        return _half_alone(view, roles)
    pods = [role.pod for role in roles if role.pod is not None]
    with_node = [since for pod in pods if (since := pod.scheduled_since) is not None]
    if len(with_node) == len(pods):
        return _starting(view, roles, max(with_node))
    if with_node:
        newest = max([pod.created for pod in pods])
        return _half(view, max(newest, *with_node))
    return _unscheduled(view, roles)


def _is_judged(view: TrialView, role: RoleView) -> bool:
    pod = role.pod
    return pod is not None and pod.deletion is None and view.life(role) is LIVE


def _half_alone(view: TrialView, roles: list[RoleView]) -> GangVerdict:
    """One has a node, the other's pod cannot even be created, for instance by a quota."""
    missing = [role for role in view.needed if view.life(role) in (NEW, UNKNOWN)]
    with_node = [
        since for role in roles if role.pod and (since := role.pod.scheduled_since) is not None
    ]
    tried = [role.tried_at for role in missing if role.tried_at is not None]
    if not with_node or not tried or len(roles) + len(missing) < len(view.needed):
        return _NO_DEADLINE
    return _half(view, max(*with_node, *tried))


def _half(view: TrialView, since: float) -> GangVerdict:
    deadline = since + view.settings.half_scheduled
    if view.now < deadline:
        return GangVerdict(deadline=deadline)
    return GangVerdict(is_half=True, trouble="only one pod of the pair got a node")


def _unscheduled(view: TrialView, roles: list[RoleView]) -> GangVerdict:
    pods = [role.pod for role in roles if role.pod is not None]
    deadline = max(pod.created for pod in pods) + view.settings.unschedulable
    refused = [pod for pod in pods if pod.is_unschedulable]
    if view.now < deadline:
        return GangVerdict(deadline=deadline)
    if not refused:
        # The scheduler has not looked yet: giving it new pods would not help.
        return GangVerdict(deadline=view.now + view.settings.recheck)
    condition = refused[0].condition("PodScheduled")
    return GangVerdict(is_unschedulable=True, trouble=condition.message if condition else "")


def _starting(view: TrialView, roles: list[RoleView], since: float) -> GangVerdict:
    late = [role for role in roles if not view.has_started(role)]
    if not late:
        return _NO_DEADLINE
    deadline = since + view.settings.starting
    if view.now < deadline:
        return GangVerdict(deadline=deadline)
    words = [failures.start_trouble(role.pod) for role in late if role.pod is not None]
    told = [word for word in words if word]
    return GangVerdict(is_late_start=True, trouble=told[0] if told else "its pods did not start")
