"""Summaries of a run's Trials: made anew where something changed, with waits where it says them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from makers_run import NAMESPACE, NOW, RUN, RUN_UID, make_manifest
from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.storage.memory import MemoryStore
from stayer_operator.adapters.memory_cluster import MemoryCluster
from stayer_operator.adapters.memory_time import MemoryClock, MemoryTelemetry
from stayer_operator.adapters.observed import InformedView
from stayer_operator.core.observed import ObjectKey, RunObject, TrialObject
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.view import TrialSummary
from stayer_operator.core.trial.status import TrialStatus
from stayer_operator.reconcile.admissions import Admissions
from stayer_operator.reconcile.gather_run import RunGathering
from stayer_operator.reconcile.ledger import Ledger


def make_run() -> RunObject:
    return RunObject(
        namespace=NAMESPACE,
        name=RUN,
        uid=RUN_UID,
        resource_version="1",
        generation=1,
        created=0.0,
        deleted=False,
        manifest=make_manifest(),
    )


class Bench:
    """Gathering over memory; the run has no tasks yet."""

    def __init__(self) -> None:
        self.view = InformedView(lambda _: None)
        self.ledger = Ledger()
        self.gathering = self.begin()
        self.version = 1

    def begin(self) -> RunGathering:
        """As a process that has just started does."""
        return RunGathering(
            observed=self.view,
            cluster=MemoryCluster(MemoryClock(NOW)),
            evidence=MemoryStore(),
            telemetry=MemoryTelemetry(),
            ledger=self.ledger,
            admissions=Admissions(self.view, self.ledger),
            settings=RunSettings(),
        )

    def put(self, name: str, **status: Any) -> None:
        self.version += 1
        held = self.view.trial(ObjectKey(NAMESPACE, name))
        trial = TrialObject(
            namespace=NAMESPACE,
            name=name,
            uid=f"uid-{name}",
            resource_version=str(self.version),
            generation=1,
            created=0.0,
            deleted=False,
            run=RUN,
            run_uid=RUN_UID,
            kind=TrialKind.ATTEMPT,
            spec={"task": {"name": "parser", "digest": "d"}, "agent": "oracle"},
        )
        self.view.trial_mirror.put(
            replace(held or trial, status=status, resource_version=str(self.version))
        )

    def trouble(self, name: str) -> None:
        notes = self.ledger.meet(f"uid-{name}", TrialStatus(), witnessed=True)
        notes.trouble = ("QuotaExceeded", "no more pods")

    def look(self) -> dict[str, TrialSummary]:
        """The summaries, which are those that a new process makes."""
        trials = asyncio.run(self.gathering.gather(make_run(), NOW)).trials
        assert trials == asyncio.run(self.begin().gather(make_run(), NOW)).trials
        return {trial.name: trial for trial in trials}


def test_only_trials_that_changed_are_summed_up_anew():
    bench = Bench()
    bench.put("a", phase="Running")
    bench.put("b", phase="Pending")
    before = bench.look()
    bench.put("b", phase="Succeeded", resolved=True)
    after = bench.look()
    assert after["a"] is before["a"]
    assert (after["b"].phase, after["b"].resolved) == ("Succeeded", True)


def test_waits_are_told_while_no_trial_of_the_run_holds_pods():
    bench = Bench()
    bench.put("a", phase="Running")
    bench.put("b", phase="Pending")
    bench.trouble("b")
    assert bench.look()["b"].waits_for == ""
    bench.put("a", phase="Failed")
    assert bench.look()["b"].waits_for == "QuotaExceeded"
    assert bench.look()["a"].waits_for == ""
    bench.put("a", phase="Draining")
    assert bench.look()["b"].waits_for == ""


def test_summaries_go_with_their_trials_and_runs():
    bench = Bench()
    bench.put("a", phase="Pending")
    bench.put("b", phase="Pending")
    bench.look()
    bench.view.trial_mirror.remove(NAMESPACE, "a", "uid-a")
    assert bench.look().keys() == {"b"}
    kept = bench.gathering.memory.summaries
    assert [list(summed) for summed in kept.values()] == [["uid-b"]]
    bench.gathering.forget(make_run().key)
    assert not kept
