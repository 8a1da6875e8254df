"""The `Observed` port over a `MemoryCluster`, with a watch that can be held back."""

from __future__ import annotations

from collections.abc import Callable

from stayer_operator.adapters.memory_cluster import NODE, POD, MemoryCluster
from stayer_operator.adapters.mirror import Change, Mirror, V
from stayer_operator.adapters.observed import InformedView
from stayer_operator.api import names
from stayer_operator.core import projection
from stayer_operator.core.observed import ObjectKey, Progress
from stayer_operator.ports import Raw


def _ignore(_: ObjectKey) -> None:
    """Nobody listens."""


class MemoryObserved(InformedView):
    """Lists what is there when it is made, then watches.

    `hold` keeps events back until `release`: what a slow watch shows. `on_run`, `on_trial` and
    `on_pods` hear which key changed. `reports` holds the newest progress by trial.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        *,
        on_run: Callable[[ObjectKey], None] = _ignore,
        on_trial: Callable[[ObjectKey], None] = _ignore,
        on_pods: Callable[[ObjectKey], None] = _ignore,
    ) -> None:
        self.reports: dict[ObjectKey, Progress] = {}
        super().__init__(self.reports.get)
        self._held: list[tuple[str, str, Raw]] | None = None
        self.is_alive = True
        self.trial_mirror.listen(lambda change: on_trial(_subject(change).key))
        self.pod_mirror.listen(lambda change: on_pods(_subject(change).trial_key))
        self.run_mirror.listen(lambda change: on_run(_subject(change).key))
        for kind in (names.RUN_KIND, names.TRIAL_KIND, POD, NODE):
            for raw in cluster.objects(kind):
                self._apply("LISTED", kind, raw)
        cluster.listen(self._hear)

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
        if kind == names.TRIAL_KIND:
            _tell(self.trial_mirror, type_, projection.trial_object(raw))
        elif kind == POD:
            _tell(self.pod_mirror, type_, projection.pod_view(raw))
        elif kind == names.RUN_KIND:
            _tell(self.run_mirror, type_, projection.run_object(raw))
        elif kind == NODE:
            _tell(self.node_mirror, type_, projection.node_view(raw))


def _tell(mirror: Mirror[V], type_: str, view: V) -> None:
    if type_ == "DELETED":
        mirror.remove(view.namespace, view.name, view.uid)
    else:
        mirror.put(view, listed=type_ == "LISTED")


def _subject(change: Change[V]) -> V:
    subject = change.new if change.new is not None else change.old
    assert subject is not None  # a change is about something
    return subject
