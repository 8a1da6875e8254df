"""Gauges that are right after a restart, counters that count each thing once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.reports import ProgressReport
from stayer_operator.adapters.observed import InformedView
from stayer_operator.core.observed import ObjectKey, RunObject, TrialObject
from stayer_operator.progress.book import ProgressBook
from stayer_operator.telemetry.evidence_counters import EvidenceCounters
from stayer_operator.telemetry.metrics import OperatorMetrics
from stayer_operator.telemetry.run_gauges import RunGauges

KEY = ObjectKey("lab", "r-1")


def trial(name: str, phase: str = "Running", **more: Any) -> TrialObject:
    spec = more.pop("spec", {"task": {"name": name}, "agent": "a", "attempt": 1})
    kind = more.pop("kind", TrialKind.ATTEMPT)
    return TrialObject(
        namespace="lab",
        name=name,
        uid=f"uid-{name}",
        resource_version="1",
        generation=1,
        created=0.0,
        deleted=False,
        run="r",
        run_uid="run-uid",
        kind=kind,
        spec=spec,
        status={"phase": phase, **more},
    )


def report(**numbers: Any) -> ProgressReport:
    return ProgressReport(**({"trial": "r-1", "role": "a", "incarnation": 1} | numbers))


class Shell:
    def __init__(self, *trials: TrialObject) -> None:
        self.book = ProgressBook(lambda key: self.view.trial(key) is not None)
        self.view = InformedView(self.book.progress)
        self.registry = CollectorRegistry()
        self.registry.register(RunGauges(self.view))
        for one in trials:
            self.view.trial_mirror.put(one)

    def read(self, metric: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(metric, labels)


def run_object() -> RunObject:
    return RunObject(
        namespace="lab",
        name="r",
        uid="run-uid",
        resource_version="1",
        generation=1,
        created=0.0,
        deleted=False,
    )


def test_per_run_gauges_come_from_statuses() -> None:
    shell = Shell(
        trial("r-1", "Succeeded", resolved=True, unitsCleared=3, regressions=1, recoveries=1),
        trial("r-2", "Succeeded", resolved=False, unitsCleared=1),
        trial("r-3", "Running", unitsCleared=2, snapshotsTaken=9, snapshotsAdjudicated=4),
    )
    labels = {"namespace": "lab", "run": "r"}
    assert shell.read("stayer_run_trials", phase="Succeeded", **labels) == 2
    assert shell.read("stayer_run_trials", phase="Failed", **labels) == 0
    assert shell.read("stayer_run_resolved_ratio", **labels) == 0.5
    assert shell.read("stayer_run_units_cleared", **labels) == 6
    assert shell.read("stayer_run_regressions", **labels) == 1
    assert shell.read("stayer_run_snapshots_taken", **labels) == 9
    assert shell.read("stayer_snapshots_queued") == 5
    assert shell.read("stayer_trials", phase="Running") == 1


def test_reports_show_at_once_and_an_ended_trials_status_is_final() -> None:
    shell = Shell(trial("r-1", unitsCleared=1), trial("r-2", "Succeeded", unitsCleared=2))
    shell.book.take(KEY, report(units_cleared=4))
    shell.book.take(ObjectKey("lab", "r-2"), report(trial="r-2", units_cleared=7))
    assert shell.read("stayer_run_units_cleared", namespace="lab", run="r") == 6


def test_a_rerun_counts_instead_of_what_it_replaces() -> None:
    cell = {"task": {"name": "t"}, "agent": "a", "attempt": 1}
    shell = Shell(
        trial("r-1", "Failed", spec=cell | {"generation": 0}),
        trial("r-2", "Succeeded", resolved=True, spec=cell | {"generation": 1}),
    )
    labels = {"namespace": "lab", "run": "r"}
    assert shell.read("stayer_run_trials", phase="Failed", **labels) == 0
    assert shell.read("stayer_run_resolved_ratio", **labels) == 1.0


def test_a_new_beginning_counts_instead_of_the_lost_one() -> None:
    cell = {"task": {"name": "t"}, "agent": "a", "attempt": 1, "generation": 2}
    shell = Shell(
        trial("r-1", "Failed", spec=cell),
        trial("r-2", "Succeeded", resolved=True, spec=cell | {"restarts": 1}),
    )
    labels = {"namespace": "lab", "run": "r"}
    assert shell.read("stayer_run_trials", phase="Failed", **labels) == 0
    assert shell.read("stayer_run_resolved_ratio", **labels) == 1.0


def test_inventory_trials_are_no_attempts() -> None:
    shell = Shell(trial("r-inv", "Succeeded", kind=TrialKind.INVENTORY))
    shell.view.run_mirror.put(run_object())
    assert shell.read("stayer_run_trials", phase="Succeeded", namespace="lab", run="r") == 0
    assert shell.read("stayer_trials", phase="Succeeded") == 1


def test_a_run_without_scores_has_no_ratio() -> None:
    shell = Shell(trial("r-1", "Running"))
    assert shell.read("stayer_run_resolved_ratio", namespace="lab", run="r") is None


def test_a_run_that_is_gone_leaves_no_series() -> None:
    shell = Shell(trial("r-1"))
    shell.view.trial_mirror.remove("lab", "r-1", "uid-r-1")
    assert b"run=" not in generate_latest(shell.registry)


class Watched(dict[str, Any]):
    """A status that knows how often its numbers were read."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.reads += key == "unitsCleared"
        return super().get(key, default)


def test_a_scrape_counts_anew_only_what_changed() -> None:
    status = Watched(phase="Running", unitsCleared=1)
    shell = Shell(replace(trial("r-1"), status=status), trial("r-2", unitsCleared=1))
    labels = {"namespace": "lab", "run": "r"}
    assert shell.read("stayer_run_units_cleared", **labels) == 2
    before = status.reads
    changed = replace(trial("r-2", "Succeeded", unitsCleared=3), resource_version="2")
    shell.view.trial_mirror.put(changed)
    assert shell.read("stayer_run_units_cleared", **labels) == 4
    assert shell.read("stayer_run_trials", phase="Succeeded", **labels) == 1
    assert status.reads == before


def test_a_scrape_that_fails_spoils_no_later_one() -> None:
    shell = Shell(trial("r-1", unitsCleared=1), trial("r-2", unitsCleared=1))
    labels = {"namespace": "lab", "run": "r"}
    assert shell.read("stayer_run_units_cleared", **labels) == 2
    for version, cleared in (("2", 5), ("3", "many")):
        name = f"r-{int(version) - 1}"
        shell.view.trial_mirror.put(
            replace(trial(name, unitsCleared=cleared), resource_version=version)
        )
    with pytest.raises(ValueError, match="many"):
        shell.read("stayer_run_units_cleared", **labels)
    shell.view.trial_mirror.put(replace(trial("r-2", unitsCleared=2), resource_version="4"))
    assert shell.read("stayer_run_units_cleared", **labels) == 7


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics(CollectorRegistry())


def value(counter: Any) -> float:
    return float(counter._value.get())


def test_cumulative_sources_are_counted_once(metrics: OperatorMetrics) -> None:
    counters = EvidenceCounters(metrics)
    counters.trial_changed(KEY, {})
    counters.reported(KEY, report(snapshots_taken=2))
    counters.reported(KEY, report(snapshots_taken=5))
    counters.reported(KEY, report(snapshots_taken=4))
    counters.trial_changed(KEY, {"snapshotsTaken": 5})
    counters.trial_changed(KEY, {"snapshotsTaken": 6})
    assert value(metrics.snapshots_taken) == 6


def test_what_was_there_before_a_restart_is_not_counted_again(metrics: OperatorMetrics) -> None:
    counters = EvidenceCounters(metrics)
    counters.trial_found(KEY, {"snapshotsTaken": 10, "round": 2})
    counters.reported(KEY, report(snapshots_taken=12, round_seconds=(60.0, 30.0)))
    assert value(metrics.snapshots_taken) == 2
    assert metrics.round_duration._sum.get() == 30.0


def test_store_errors_of_each_incarnation_add_up(metrics: OperatorMetrics) -> None:
    counters = EvidenceCounters(metrics)
    counters.reported(KEY, report(store_errors=3))
    counters.reported(KEY, report(incarnation=2, store_errors=1))
    counters.reported(KEY, report(incarnation=2, store_errors=2))
    assert value(metrics.store_errors.labels("sidecar")) == 5


def test_only_the_infrastructures_faults_are_infrastructure_retries(
    metrics: OperatorMetrics,
) -> None:
    metrics.pod_replaced("a", "infrastructure", "node_lost")
    metrics.pod_replaced("a", "agent", "oom")
    assert value(metrics.infrastructure_retries.labels("node_lost")) == 1
    assert value(metrics.infrastructure_retries.labels("oom")) == 0


def test_a_page_of_progress_is_kept_only_for_known_trials_and_newest_incarnations() -> None:
    book = ProgressBook(lambda key: key == KEY)
    assert not book.take(ObjectKey("lab", "ghost"), report(trial="ghost"))
    assert book.take(KEY, report(incarnation=2, round=2, snapshots_taken=7))
    assert not book.take(KEY, report(incarnation=1, round=9))
    assert book.take(KEY, report(role="b", units_cleared=3, snapshots_taken=6))
    progress = book.progress(KEY)
    assert progress is not None
    assert (progress.round, progress.snapshots_taken, progress.units_cleared) == (2, 7, 3)
    book.drop(KEY)
    assert book.progress(KEY) is None
