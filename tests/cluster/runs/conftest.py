"""The demo's run, applied once for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from makers_cluster import Api, ClusterLock, Installed, Run, describe, phase, unique_name, until
from makers_faults import Audit
from makers_outcome import Evidence, read_evidence
from makers_taskset import ROOT, TASKSET, push_examples

SECONDS = 900


@dataclass(frozen=True)
class DemoRun:
    """An ended run with everything that is kept of it."""

    run: Run
    status: dict[str, Any]
    trials: list[dict[str, Any]]
    evidence: dict[str, Evidence]
    audit: Audit


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """The product, with its operator Ready and the tasks pushed."""
    push_examples()
    found = Installed(Api())
    until(found.is_calm, "one ready operator", 120)
    yield found
    found.api.close()


@pytest.fixture(scope="module")
def demo(installed: Installed) -> Iterator[DemoRun]:
    """examples/runs/demo.yaml under a name of its own, from apply to delete."""
    manifest = yaml.safe_load((ROOT / "examples/runs/demo.yaml").read_text())
    manifest["metadata"] = {"name": unique_name("demo"), "namespace": installed.namespace}
    manifest["spec"]["tasks"]["source"]["s3"]["prefix"] = TASKSET
    with ClusterLock().held(alone=False):
        audit = Audit()
        run = installed.apply(manifest)
        run.wait_for_end(SECONDS)
        trials = run.attempts()
        assert {phase(trial) for trial in trials} == {"Succeeded"}, describe(run)
        evidence = {
            trial["metadata"]["name"]: read_evidence(trial["spec"]["prefix"]) for trial in trials
        }
        yield DemoRun(run, run.status, trials, evidence, audit)
        run.delete()
        run.wait_for_nothing()
