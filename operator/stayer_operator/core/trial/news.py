"""Which changes of a pod a trial has to be looked at for.

A pod says ten times on its way to running that it has come a little further, and no rule listens:
they read deadlines, ends, troubles and whether the task container runs. What is left out here may
be left out only because no rule and no admission reads it (a property test says so).
"""

from operator import attrgetter
from typing import Any

from stayer_operator.core.failures import start_trouble
from stayer_operator.core.observed import PodCondition, PodView
from stayer_operator.core.pods.containers import SIDECARS, TASK

_CONDITIONS = ("PodScheduled", "DisruptionTarget")


def is_news(old: PodView, new: PodView) -> bool:
    """The two sights of one pod differ in something that may decide."""
    return (
        _facts(old) != _facts(new)
        or start_trouble(old) != start_trouble(new)
        or (old.conditions != new.conditions and _judged(old) != _judged(new))
        or _told(old) != _told(new)
    )


def has_begun(pod: PodView) -> bool:
    """Something has become of it since it was created."""
    return bool(
        pod.node
        or pod.conditions
        or pod.containers
        or pod.deletion is not None
        or pod.phase != "Pending"
    )


_facts = attrgetter(
    "uid",
    "owner_uid",
    "created",
    "deletion",
    "deletion_grace",
    "node",
    "phase",
    "reason",
    "message",
)


def _judged(pod: PodView) -> list[PodCondition | None]:
    return [pod.condition(type_) for type_ in _CONDITIONS]


def _told(pod: PodView) -> list[tuple[Any, ...]]:
    """Nothing of sidecars that have not ended yet, and of other init containers that wait, run or
    have ended well.
    """
    told: list[tuple[Any, ...]] = []
    for container in pod.containers:
        name, ends = container.name, container.ends
        if name == TASK:
            told.append((name, container.state, ends, container.restarts))
            continue
        if ends and name not in SIDECARS:
            ends = tuple([end for end in ends if end.exit_code != 0])
        if ends or container.restarts:
            told.append((name, "", ends, container.restarts))
    return told
