"""Which changes of a pod a trial has to be looked at for.

A pod says ten times on its way to running that it has come a little further, and no rule listens:
they read deadlines, ends, troubles and whether the task container runs. What is left out here may
be left out only because no rule and no admission reads it (a property test says so).
"""

from typing import Any

from stayer_operator.core.failures import start_trouble
from stayer_operator.core.observed import ContainerView, PodView
from stayer_operator.core.pods.containers import SIDECARS, TASK

_CONDITIONS = ("PodScheduled", "DisruptionTarget")


def is_news(old: PodView, new: PodView) -> bool:
    """The two sights of one pod differ in something that may decide."""
    return _essence(old) != _essence(new)


def _essence(pod: PodView) -> tuple[Any, ...]:
    return (
        pod.uid,
        pod.owner_uid,
        pod.created,
        pod.deletion,
        pod.deletion_grace,
        pod.node,
        pod.phase,
        pod.reason,
        pod.message,
        start_trouble(pod),
        tuple(pod.condition(type_) for type_ in _CONDITIONS),
        tuple(told for c in pod.containers if (told := _told_by(c)) is not None),
    )


def _told_by(container: ContainerView) -> tuple[Any, ...] | None:
    """Nothing of sidecars that have not ended yet, and of other init containers that wait, run or
    have ended well.
    """
    state = container.state if container.name == TASK else ""
    if container.name in (TASK, *SIDECARS):
        ends = container.ends
    else:
        ends = tuple(end for end in container.ends if end.exit_code != 0)
    if not state and not ends and not container.restarts:
        return None
    return (container.name, state, ends, container.restarts)
