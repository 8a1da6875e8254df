"""What our sidecars say of themselves. `failures.py` judges ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pydantic

from stayer_evaluator.records.exits import NOT_ISOLATED
from stayer_evaluator.records.reports import TerminationMessage
from stayer_operator.api.conditions import Reason
from stayer_operator.core.observed import ContainerView, PodView
from stayer_operator.core.pods.containers import SIDECARS


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A sidecar that will not work here: the isolation it must prove is not there."""

    reason: Reason
    message: str


def sidecar_of(pod: PodView) -> ContainerView | None:
    """Our sidecar in the pod."""
    for container in pod.containers:
        if container.name in SIDECARS:
            return container
    return None


def has_ended(pod: PodView) -> bool:
    """The sidecar has ended, now or in the life before this one."""
    for container in pod.containers:
        if container.name in SIDECARS:
            return container.end is not None or container.last_end is not None
    return False


def sidecar_message(pod: PodView, *kinds: str) -> TerminationMessage | None:
    """The newest termination message of the sidecar of one of these kinds; None when there is
    none that can be read. Only the sidecar can write it: the task container does not see the file.
    """
    for message in _messages(pod):
        if message.kind in kinds:
            return message
    return None


def _messages(pod: PodView) -> Iterator[TerminationMessage]:
    sidecar = sidecar_of(pod)
    for end in sidecar.ends if sidecar else ():
        if (message := _parse_message(end.message)) is not None:
            yield message


@lru_cache(maxsize=128)  # read again in a few passes that come soon; 1.4 kB each
def _parse_message(text: str) -> TerminationMessage | None:
    try:
        return TerminationMessage.model_validate_json(text)
    except pydantic.ValidationError:
        return None


def refusal(pod: PodView) -> Refusal | None:
    """The sidecar ended with exit code 4, now or in the life before this one."""
    sidecar = sidecar_of(pod)
    if sidecar is None or all(end.exit_code != NOT_ISOLATED for end in sidecar.ends):
        return None
    message = sidecar_message(pod, "error")
    known = {reason.value: reason for reason in _REFUSALS}
    reason = known.get(message.reason if message else "", Reason.ISOLATION_NOT_ENFORCED)
    return Refusal(reason=reason, message=message.message if message else "exit code 4")


_REFUSALS = (Reason.ISOLATION_NOT_ENFORCED, Reason.USER_NAMESPACE_NOT_ENFORCED)
