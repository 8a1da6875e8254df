"""What is known of one Trial at one moment. Filled by gather; rules read nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.records.queue import EndEntry, EpisodeCursor
from stayer_evaluator.records.results import TrialResults
from stayer_operator.api import names
from stayer_operator.api.conditions import TrialCondition
from stayer_operator.core import failures
from stayer_operator.core.failures import Cause, Fault, PodEnd
from stayer_operator.core.observed import NodeView, PodView, Progress, TrialObject
from stayer_operator.core.pods.containers import TASK
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.needs import RunIntent
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec
from stayer_operator.core.trial.status import TrialStatus

T = TypeVar("T")
_UNASKED: Any = object()


class Life(StrEnum):
    """Where the current incarnation of a role stands."""

    NEW = "new"  # nobody can have created its pod yet
    UNKNOWN = "unknown"  # not there, and an earlier process may have created it
    POSTED = "posted"  # we created it, the informer does not show it yet
    LIVE = "live"
    OVER = "over"  # terminal, lost with its node, or gone


# Plain names: to look up a member of an enum costs five times as much, and each pass asks often.
NEW, UNKNOWN, POSTED = Life.NEW, Life.UNKNOWN, Life.POSTED
LIVE, OVER = Life.LIVE, Life.OVER
_HAVE_PODS = frozenset({LIVE, POSTED, OVER})


class RoleView(NamedTuple):
    """The pods of one role.

    `pod` is the current incarnation's, `last_seen` that pod as this process saw it last when it is
    gone, `older` what is left of the incarnations before. `posted_at`: when this process sent the
    POST whose success is certain or possible; `tried_at`: when it first wanted to. `may_exist`:
    the incarnation was in force before this process looked, so others may have created its pod.
    """

    role: Role
    incarnation: int
    pod: PodView | None = None
    last_seen: PodView | None = None
    older: tuple[PodView, ...] = ()
    posted_at: float | None = None
    tried_at: float | None = None
    may_exist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFact:
    """`results.json` was looked for; None: there is none."""

    found: TrialResults | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFact:
    """The end of the queue was looked at. `cursor` is that of the last snapshot."""

    next_number: int
    end: EndEntry | None
    cursor: EpisodeCursor


def asked_once(question: Callable[[TrialView], T]) -> Callable[[TrialView], T]:
    """Several rules ask it of the same view: answered at the first time and kept with the view,
    which never changes.
    """

    @wraps(question)
    def answer(view: TrialView) -> T:
        known: T = view.answers.get(question, _UNASKED)
        if known is _UNASKED:
            known = view.answers[question] = question(view)
        return known

    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """Input of `plan_trial`. `run` is None while the owning run is not observed.

    `results` and `queue` are None where they were not read; `needs.py` says when they must be.
    `written_at`: when this process last wrote the status; `swept_at`: when it last deleted all
    pods of the trial. Times are seconds since the epoch.

    What follows from the rest and is read again and again is made with the view. `held`: the
    status' conditions that are True; `is_terminal`: the outcome is recorded; `agent_needed`: the
    episode is not closed yet; `roles`: both, or the only one; `needed`: those whose pods still
    have work to do.
    """

    trial: TrialObject
    spec: TrialSpec
    status: TrialStatus
    run: RunIntent | None
    admitted: bool
    agent: RoleView | None  # None for an inventory trial
    adjudicator: RoleView
    now: float
    pod_settings: PodSettings
    settings: TrialSettings = field(default_factory=TrialSettings)
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    progress: Progress | None = None
    results: ResultsFact | None = None
    queue: QueueFact | None = None
    written_at: float | None = None
    swept_at: float | None = None
    held: frozenset[str] = field(init=False, repr=False, compare=False)
    is_terminal: bool = field(init=False, repr=False, compare=False)
    agent_needed: bool = field(init=False, repr=False, compare=False)
    roles: tuple[RoleView, ...] = field(init=False, repr=False, compare=False)
    needed: tuple[RoleView, ...] = field(init=False, repr=False, compare=False)
    answers: dict[Any, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # of `asked_once` and `life`

    def __post_init__(self) -> None:
        held, agent, last = self.status.held, self.agent, (self.adjudicator,)
        needed = agent is not None and TrialCondition.AGENT_ENDED not in held
        roles = last if agent is None else (agent, self.adjudicator)
        # A frozen class has no other way to fill its own fields.
        fill = object.__setattr__
        fill(self, "held", held)
        fill(self, "is_terminal", TrialCondition.COMPLETE in held)
        fill(self, "agent_needed", needed)
        fill(self, "roles", roles)
        fill(self, "needed", roles if needed else last)

    @property
    def identity(self) -> TrialIdentity:
        trial = self.trial
        return TrialIdentity(namespace=trial.namespace, name=trial.name, uid=trial.uid)

    @property
    def pods(self) -> tuple[PodView, ...]:
        """Every pod of the trial that is there."""
        found: list[PodView] = []
        for role in self.roles:
            found += role.older
            if role.pod is not None:
                found.append(role.pod)
        return tuple(found)

    def is_over(self, pod: PodView) -> bool:
        """Nothing of it runs any more, or nobody will ever say so."""
        if pod.is_terminal or pod.deletion is None:
            return pod.is_terminal
        node = self.nodes.get(pod.node)
        return failures.is_lost(pod, node, self.now, self.settings.lost_node)

    def life(self, role: RoleView) -> Life:
        """Where the current incarnation of one of the view's roles stands."""
        known: Life | None = self.answers.get(role.role)
        if known is None:
            known = self.answers[role.role] = self._life(role)
        return known

    def _life(self, role: RoleView) -> Life:
        pod = role.pod
        if pod is not None:
            over = pod.is_terminal if pod.deletion is None else self.is_over(pod)
            return OVER if over else LIVE
        known = self.status.pod(role.role) == self.pod_name(role)
        if role.last_seen is not None or known:
            return OVER
        if role.posted_at is not None:
            waited = self.now - role.posted_at
            return POSTED if waited < self.settings.unseen else OVER
        return UNKNOWN if role.may_exist else NEW

    def end_of(self, role: RoleView) -> PodEnd:
        """Judgement on a current incarnation that is over."""
        pod = role.pod or role.last_seen
        if pod is None:
            return PodEnd(
                fault=Fault.INFRASTRUCTURE, cause=Cause.VANISHED, message="its pod is gone"
            )
        return failures.classify_end(pod, self.nodes.get(pod.node))

    def pod_name(self, role: RoleView) -> str:
        """Name of the current incarnation's pod."""
        return names.pod_name(self.trial.name, role.role, role.incarnation)

    def is_running(self, role: RoleView) -> bool:
        """Its task container runs, so its sidecar has started."""
        task = role.pod.container(TASK) if role.pod is not None else None
        return task is not None and task.state == "running" and self.life(role) is LIVE

    def has_started(self, role: RoleView) -> bool:
        """Its task container runs or ran."""
        task = role.pod.container(TASK) if role.pod is not None else None
        return task is not None and task.state != "waiting"

    @property
    @asked_once
    def has_pods(self) -> bool:
        """A current incarnation that still has work to do has a pod, or is about to show one."""
        return not _HAVE_PODS.isdisjoint(map(self.life, self.needed))
