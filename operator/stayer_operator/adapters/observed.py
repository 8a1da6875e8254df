"""The `Observed` port: what the informers and progress reports hold in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stayer_operator.adapters.cluster import NODES, PODS, RUNS, TRIALS
from stayer_operator.adapters.mirror import Change, Mirror
from stayer_operator.core import projection
from stayer_operator.core.observed import (
    NodeView,
    ObjectKey,
    PodView,
    Progress,
    RunObject,
    TrialObject,
)
from stayer_operator.ports import Raw


class InformedView:
    """One mirror a kind. Runs are fed by the kopf handler, the others by informers."""

    def __init__(self, progress: Callable[[ObjectKey], Progress | None]) -> None:
        """`progress` answers for the newest reports of a trial."""
        self.trial_mirror: Mirror[TrialObject] = Mirror(index=lambda trial: trial.run_uid)
        self.pod_mirror: Mirror[PodView] = Mirror(index=lambda pod: pod.trial_key)
        self.node_mirror: Mirror[NodeView] = Mirror()
        self.run_mirror: Mirror[RunObject] = Mirror()
        self._progress = progress
        self._witnessed: set[str] = set()
        self.trial_mirror.listen(self._note_trial)

    def trial(self, key: ObjectKey) -> TrialObject | None:
        """The Trial, None when it is not there."""
        return self.trial_mirror.get(*key)

    def trials(self) -> Iterable[TrialObject]:
        """All Trials; the caller does not await while iterating."""
        return self.trial_mirror

    def trials_of_run(self, run_uid: str) -> Sequence[TrialObject]:
        """The Trials that a run owns."""
        return self.trial_mirror.by(run_uid)

    def pods(self, trial: ObjectKey) -> Sequence[PodView]:
        """The pods that say they belong to the Trial."""
        return self.pod_mirror.by(trial)

    def run(self, key: ObjectKey) -> RunObject | None:
        """The run, None when it is not there."""
        return self.run_mirror.get(*key)

    def runs(self) -> Iterable[RunObject]:
        """All runs; the caller does not await while iterating."""
        return self.run_mirror

    def node(self, name: str) -> NodeView | None:
        """The node, None when it is not known."""
        return self.node_mirror.get("", name)

    def progress(self, trial: ObjectKey) -> Progress | None:
        """The newest progress reports about a trial."""
        return self._progress(trial)

    def witnessed(self, trial_uid: str) -> bool:
        """The Trial was created while this process was looking."""
        return trial_uid in self._witnessed

    def show(self, plural: str, raw: Raw) -> None:
        """An object that a request of ours answered with; other kinds are passed over."""
        if plural == PODS.plural:
            self.pod_mirror.put(projection.pod_view(raw))
        elif plural == TRIALS.plural:
            self.trial_mirror.put(projection.trial_object(raw))
        elif plural == RUNS.plural:
            self.run_mirror.put(projection.run_object(raw))
        elif plural == NODES.plural:
            self.node_mirror.put(projection.node_view(raw))

    def forget(self, plural: str, namespace: str, name: str, uid: str) -> None:
        """A request of ours was told that the object is not there any more."""
        mirrors: dict[str, Mirror[Any]] = {
            PODS.plural: self.pod_mirror,
            TRIALS.plural: self.trial_mirror,
            RUNS.plural: self.run_mirror,
        }
        mirrors[plural].remove(namespace, name, uid)

    def _note_trial(self, change: Change[TrialObject]) -> None:
        if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
            self._witnessed.discard(change.old.uid)
        is_new = change.new is not None and (change.old is None or change.old.uid != change.new.uid)
        if is_new and change.new is not None and not change.listed:
            self._witnessed.add(change.new.uid)
