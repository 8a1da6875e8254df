"""The `Observed` port over a `MemoryCluster`, with a watch that can be held back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stayer_operator.adapters.memory_cluster import NODE, POD, MemoryCluster
from stayer_operator.adapters.mirror import Change, Mirror, V
from stayer_operator.api import names
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


def _ignore(_: ObjectKey) -> None:
    """Nobody listens."""


class MemoryObserved:
    """Lists what is there when it is made, then watches.

    `hold` keeps events back until `release`: what a slow watch shows. `on_run`, `on_trial` and
    `on_pods` hear which key changed.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        *,
        on_run: Callable[[ObjectKey], None] = _ignore,
        on_trial: Callable[[ObjectKey], None] = _ignore,
        on_pods: Callable[[ObjectKey], None] = _ignore,
    ) -> None:
        self._trials: Mirror[TrialObject] = Mirror(index=lambda trial: trial.run_uid)
        self._pods: Mirror[PodView] = Mirror(index=lambda pod: pod.trial_key)
        self._runs: Mirror[RunObject] = Mirror()
        self._nodes: Mirror[NodeView] = Mirror()
        self._witnessed: set[str] = set()
        self._held: list[tuple[str, str, Raw]] | None = None
        self.reports: dict[ObjectKey, Progress] = {}
        self.is_alive = True
        self._trials.listen(lambda change: on_trial(_subject(change).key))
        self._pods.listen(lambda change: on_pods(_subject(change).trial_key))
        self._runs.listen(lambda change: on_run(_subject(change).key))
        for kind in (names.RUN_KIND, names.TRIAL_KIND, POD, NODE):
            for raw in cluster.objects(kind):
                self._apply("LISTED", kind, raw)
        cluster.listen(self._hear)

    def trial(self, key: ObjectKey) -> TrialObject | None:
        """The Trial."""
        return self._trials.get(*key)

    def trials(self) -> Iterable[TrialObject]:
        """All Trials."""
        return self._trials

    def trials_of_run(self, run_uid: str) -> Sequence[TrialObject]:
        """The Trials of a run."""
        return self._trials.by(run_uid)

    def pods(self, trial: ObjectKey) -> Sequence[PodView]:
        """The pods of a trial."""
        return self._pods.by(trial)

    def run(self, key: ObjectKey) -> RunObject | None:
        """The run."""
        return self._runs.get(*key)

    def runs(self) -> Iterable[RunObject]:
        """All runs."""
        return self._runs

    def node(self, name: str) -> NodeView | None:
        """The node."""
        return self._nodes.get("", name)

    def progress(self, trial: ObjectKey) -> Progress | None:
        """What `reports` holds."""
        return self.reports.get(trial)

    def witnessed(self, trial_uid: str) -> bool:
        """The Trial came by the watch."""
        return trial_uid in self._witnessed

    def hold(self) -> None:
        """Keep events back from now on."""
        self._held = self._held or []

    def release(self) -> None:
        """Show what was kept back, and go on."""
        held, self._held = self._held or [], None
        for event in held:
            self._apply(*event)

    def _hear(self, type_: str, kind: str, raw: Raw) -> None:
        if not self.is_alive:
            return
        if self._held is not None:
            self._held.append((type_, kind, raw))
        else:
            self._apply(type_, kind, raw)

    def _apply(self, type_: str, kind: str, raw: Raw) -> None:
        metadata = raw["metadata"]
        identity = (metadata.get("namespace", ""), metadata["name"], metadata["uid"])
        if kind == names.TRIAL_KIND:
            if type_ == "ADDED":
                self._witnessed.add(metadata["uid"])
            self._tell(self._trials, type_, identity, projection.trial_object(raw))
        elif kind == POD:
            self._tell(self._pods, type_, identity, projection.pod_view(raw))
        elif kind == names.RUN_KIND:
            self._tell(self._runs, type_, identity, projection.run_object(raw))
        elif kind == NODE:
            self._tell(self._nodes, type_, identity, projection.node_view(raw))

    @staticmethod
    def _tell(mirror: Mirror[V], type_: str, identity: tuple[str, str, str], view: V) -> None:
        if type_ == "DELETED":
            mirror.remove(*identity)
        else:
            mirror.put(view, listed=type_ == "LISTED")


def _subject(change: Change[V]) -> V:
    subject = change.new if change.new is not None else change.old
    assert subject is not None  # a change is about something
    return subject
