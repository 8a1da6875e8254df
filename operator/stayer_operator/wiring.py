"""What sees and what counts, put together: mirrors, informers, reports and metrics.

Part of the composition root; main.py adds what acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from stayer_evaluator.records.reports import ProgressReport
from stayer_operator.adapters import wire
from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.cluster import NODES, PODS, TRIALS
from stayer_operator.adapters.feature_probe import FeatureProbe
from stayer_operator.adapters.informer import Informer
from stayer_operator.adapters.mirror import Change, V
from stayer_operator.adapters.observed import InformedView
from stayer_operator.adapters.runs import RunFeed
from stayer_operator.api import names
from stayer_operator.core import projection
from stayer_operator.core.features.decide import Features, Source, Wanted
from stayer_operator.core.features.judge import Patience
from stayer_operator.core.features.pod import Question, node_runtimes
from stayer_operator.core.observed import NodeView, ObjectKey, PodView, RunObject, TrialObject
from stayer_operator.core.trial.news import has_begun, is_news
from stayer_operator.progress.book import ProgressBook
from stayer_operator.settings import Settings
from stayer_operator.telemetry.evidence_counters import EvidenceCounters
from stayer_operator.telemetry.metrics import OperatorMetrics
from stayer_operator.telemetry.run_gauges import RunGauges

log = structlog.get_logger(__name__)

KeyListener = Callable[[ObjectKey], None]

REPORT_SECONDS = 15.0  # from a trial's first new report to its next pass


class Sight:
    """Everything observed, in memory, and the metrics about it."""

    def __init__(self) -> None:
        self.book = ProgressBook(lambda key: self.view.trial(key) is not None)
        self.view = InformedView(self.book.progress)
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.metrics = OperatorMetrics(self.registry)
        self.registry.register(RunGauges(self.view))
        self._counters = EvidenceCounters(self.metrics)
        self._reported: set[ObjectKey] = set()
        self.book.listen(self._counters.reported)
        self.view.trial_mirror.listen(self._count_trial)

    def listen(
        self,
        *,
        on_run: KeyListener,
        on_trial: KeyListener,
        on_pods: KeyListener,
        on_report: KeyListener,
    ) -> None:
        """Hear which run or trial changed, whose pods did, and (seldom) who reported progress."""

        def run_changed(change: Change[RunObject]) -> None:
            on_run(_either(change).key)

        def trial_changed(change: Change[TrialObject]) -> None:
            on_trial(_either(change).key)

        def pod_changed(change: Change[PodView]) -> None:
            if _decides(change):
                on_pods(_either(change).trial_key)

        def node_changed(change: Change[NodeView]) -> None:
            if _turned(change):
                for trial in self._trials_on(_either(change).name):
                    on_pods(trial)

        self.view.run_mirror.listen(run_changed)
        self.view.trial_mirror.listen(trial_changed)
        self.view.pod_mirror.listen(pod_changed)
        self.view.node_mirror.listen(node_changed)
        self.book.listen(partial(self._reported_soon, on_report))

    def _reported_soon(
        self, on_report: KeyListener, key: ObjectKey, _report: ProgressReport
    ) -> None:
        """Many reports, one pass: their numbers are cumulative and folded once a minute."""

        def ring() -> None:
            self._reported.discard(key)
            on_report(key)

        if key not in self._reported:
            self._reported.add(key)
            asyncio.get_running_loop().call_later(REPORT_SECONDS, ring)

    def informers(self, client: ApiClient, namespaces: Collection[str]) -> list[Informer[Any]]:
        """One for each kind and namespace; nodes have none."""
        places: tuple[str | None, ...] = tuple(namespaces) or (None,)
        view = self.view
        made: list[Informer[Any]] = [
            Informer(client, NODES, view.node_mirror, projection.node_view)
        ]
        for place in places:
            made += [
                Informer(
                    client,
                    TRIALS,
                    view.trial_mirror,
                    projection.trial_object,
                    decoders=wire.TRIALS,
                    namespace=place,
                ),
                Informer(
                    client,
                    PODS,
                    view.pod_mirror,
                    projection.pod_view,
                    decoders=wire.PODS,
                    namespace=place,
                    selector=names.POD_SELECTOR,
                ),
            ]
        return made

    def run_feed(self, client: ApiClient, namespaces: Collection[str]) -> RunFeed:
        """Takes what kopf hears of runs."""
        return RunFeed(client, namespaces, self.view.run_mirror)

    def _trials_on(self, node: str) -> set[ObjectKey]:
        return {pod.trial_key for pod in self.view.pod_mirror if pod.node == node}

    def _count_trial(self, change: Change[TrialObject]) -> None:
        if change.new is None:
            key = _either(change).key
            self._counters.trial_gone(key)
            self.book.drop(key)
        elif change.old is None and change.listed:
            self._counters.trial_found(change.new.key, change.new.status)
        else:
            self._counters.trial_changed(change.new.key, change.new.status)


async def find_features(
    settings: Settings, client: ApiClient, nodes: Iterable[NodeView], may_write: Callable[[], bool]
) -> Features:
    """What the nodes can do for trial pods: as set, or as a probe pod finds; the log says which."""
    place, ours, patience = settings.installation, settings.trial_pods, Patience()
    question = Question(
        namespace=place.namespace,
        asker=place.deployment or settings.serving.lease_name,
        runner_image=ours.runner_image,
        pull_policy=ours.pull_policy,
        node_runtimes=node_runtimes(node.runtime for node in nodes),
        start_seconds=patience.start,
    )
    probe = FeatureProbe(
        client, question, deployment=place.deployment, patience=patience, may_write=may_write
    )
    wanted = Wanted(delivery=ours.runner_delivery, user_namespaces=ours.user_namespaces)
    features = await probe.find(wanted)
    sources = (features.delivery_source, features.user_namespaces_source)
    tell = log.warning if Source.ASSUMED in sources else log.info
    tell(
        "features",
        runner_delivery=features.delivery,
        user_namespaces=features.user_namespaces,
        sources=[source.value for source in sources],
        message=features.message,
    )
    return features


def _decides(change: Change[PodView]) -> bool:
    """A pod that is gone, or one that a rule would judge differently. One that was just created
    was created by a pass, which knows; it is heard of when something becomes of it.
    """
    if change.new is None:
        return True
    if change.old is None:
        return change.listed or has_begun(change.new)
    return is_news(change.old, change.new)


def _turned(change: Change[NodeView]) -> bool:
    """A node came, went, or changed its readiness."""
    return change.old is None or change.new is None or change.old.ready != change.new.ready


def _either(change: Change[V]) -> V:
    """The object of a change, new or gone."""
    found = change.new if change.new is not None else change.old
    assert found is not None, "a change has a before or an after"
    return found
