"""From `kubectl apply` to scores: what examples/runs/demo.yaml must come to, and its evidence."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from makers_faults import pods_created
from makers_outcome import HISTORY, history_of, list_keys, read_object, restored
from makers_taskset import ROOT, load_demo
from stayer_evaluator.records.outcomes import UnitState
from stayer_evaluator.records.run_results import RunResults
from stayer_operator.cli.main import app

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

EXPECTED = ROOT / "examples/runs/demo.expected.json"
TRACED = {"trial_started", "round_started", "snapshot_taken", "round_ended", "checkpoint",
          "trial_finished"}  # fmt: skip


@pytest.fixture(scope="module")
def report(demo) -> RunResults:
    """The report that the operator stored."""
    data = read_object(demo.status["report"])
    assert data is not None
    return RunResults.from_bytes(data)


def test_every_trial_scores_as_its_agent_implies(report: RunResults) -> None:
    results = report.model_dump(mode="json")

    load_demo().compare(results, EXPECTED)

    cells = Counter((line.agent, line.task) for line in report.trials)
    assert cells == {
        ("oracle", "task_cellgrid"): 1, ("oracle", "task_durations"): 2,
        ("oracle", "task_tallybook"): 1, ("nop", "task_cellgrid"): 1,
        ("nop", "task_durations"): 2, ("nop", "task_tallybook"): 1,
        ("wanderer", "task_cellgrid"): 1, ("breaker", "task_durations"): 2,
    }  # fmt: skip


def test_the_runs_results_are_its_trials_results(demo, report: RunResults) -> None:
    assert {line.trial for line in report.trials} == demo.evidence.keys()
    for line in report.trials:
        results = demo.evidence[line.trial].results
        assert line.metrics == results.metrics
        assert (line.valid, line.failure_mode) == (results.valid, results.failure_mode)
        assert line.snapshots_taken == results.snapshots_taken
        assert line.snapshots_adjudicated == results.snapshots_adjudicated
        assert line.canaries_run == results.canaries_run
        assert line.infra_restarts == 0


def test_the_commands_results_are_the_stored_ones(demo, report: RunResults) -> None:
    arguments = ["run", "results", demo.run.name, "-n", demo.run.at.namespace, "-o", "json"]

    said = CliRunner().invoke(app, arguments)

    assert said.exit_code == 0, said.output
    found = RunResults.model_validate_json(said.stdout)
    assert sorted(found.trials, key=str) == sorted(report.trials, key=str)
    assert found.cells == report.cells


def test_the_status_of_every_trial_says_the_same(demo) -> None:
    for trial in demo.trials:
        status, results = trial["status"], demo.evidence[trial["metadata"]["name"]].results
        metrics = results.metrics
        assert metrics is not None
        assert status["resolved"] == metrics.resolved
        assert status["unitsCleared"] == metrics.units_cleared
        assert status["unitsTotal"] == metrics.units_total
        assert status["regressions"] == metrics.reg_events
        assert status["recoveries"] == metrics.recoveries
        assert status["snapshotsTaken"] == results.snapshots_taken
        assert status["snapshotsAdjudicated"] == results.snapshots_adjudicated
        assert status["failureMode"] == results.failure_mode
        assert status.get("infraRestarts", 0) == 0


def test_the_runs_status_sums_its_trials_up(demo) -> None:
    metrics = [evidence.results.metrics for evidence in demo.evidence.values()]
    share = sum(m.resolved for m in metrics) / len(metrics)

    assert demo.status["phase"] == "Succeeded"
    assert demo.status["trials"]["total"] == len(metrics)
    assert demo.status["trials"]["succeeded"] == len(metrics)
    assert demo.status["resolvedRate"] == f"{share:.2f}"
    assert demo.status["regressions"] == sum(m.reg_events for m in metrics)


def test_prometheus_holds_the_same_numbers(demo, report: RunResults) -> None:
    assert os.environ.get("STAYER_PROMETHEUS_URL"), "the cluster of the tests has a Prometheus"

    load_demo().check_prometheus(report.model_dump(mode="json"), demo.run.name)


def test_everything_of_every_trial_is_stored(demo) -> None:
    for trial in demo.trials:
        evidence = demo.evidence[trial["metadata"]["name"]]
        keys = list_keys(trial["spec"]["prefix"])
        assert {"trial.json", "results.json", "trace.jsonl.zst"} <= set(keys)
        kinds = Counter(key.partition("/")[0] for key in keys)
        assert kinds["queue"] == len(evidence.snapshots) + 2  # one epoch, one end
        assert kinds["trace"] >= 2  # recorder and adjudicator
        verdicts = [key for key in keys if key.startswith("verdicts/") and ".try" not in key]
        # everySnapshot: each has its verdict.
        assert verdicts == [f"verdicts/{entry.number:08d}" for entry in evidence.snapshots]
        assert evidence.verdicts[-1].last
        assert not any(key.startswith("logs/stopped-") for key in keys)


def test_scores_follow_from_the_evidence_alone(demo) -> None:
    for evidence in demo.evidence.values():
        assert evidence.rescored() == evidence.results.metrics


def test_the_trace_tells_the_whole_story(demo) -> None:
    for evidence in demo.evidence.values():
        assert {event.type for event in evidence.trace} >= TRACED
        for writer in {event.writer for event in evidence.trace}:
            numbers = [event.sequence for event in evidence.trace if event.writer == writer]
            assert sorted(numbers) == list(range(len(numbers)))
        told = Counter(kind for kind, _, _ in history_of(evidence))
        metrics = evidence.results.metrics
        # Units without tests are cleared too, and count in no metric.
        assert told["unit_cleared"] == sum(len(v.cleared) for v in evidence.verdicts)
        assert told["regression"] == metrics.reg_events
        assert told["recovery"] == metrics.recoveries
        assert told["implemented"] == len(metrics.sigma)
        assert set(told) <= set(HISTORY)


def test_nop_clears_nothing_while_its_canaries_run(demo) -> None:
    idle = [e for e in demo.evidence.values() if e.results.agent == "nop"]
    assert len(idle) == 4
    for evidence in idle:
        canaries = [canary for verdict in evidence.verdicts for canary in verdict.canaries]
        assert {canary.when for canary in canaries} == {"before", "after"}
        assert {canary.expected for canary in canaries} == {"passed", "failed"}
        assert all(canary.held for canary in canaries)
        states = {r.state for verdict in evidence.verdicts for r in verdict.results.values()}
        assert UnitState.PASS not in states


def test_every_pod_ran_in_a_user_namespace(demo) -> None:
    for evidence in demo.evidence.values():
        assert evidence.results.user_namespace not in ("", "host")
        assert all(v.environment["user_namespace"] != "host" for v in evidence.verdicts)


def test_snapshots_restore_to_what_the_agent_had(demo, tmp_path: Path) -> None:
    [wanderer] = [e for e in demo.evidence.values() if e.results.agent == "wanderer"]
    first, last = wanderer.snapshots[0], wanderer.snapshots[-1]

    before, after = restored(wanderer, first, tmp_path), restored(wanderer, last, tmp_path)

    base = ROOT / "examples/tasks/task_cellgrid/base"
    for path in (path for path in base.rglob("*") if path.is_file()):
        assert (before / path.relative_to(base)).read_bytes() == path.read_bytes()
    patches = {path.stem: path.read_bytes() for path in (after / "requirement_patches").iterdir()}
    gold = ROOT / "examples/tasks/task_cellgrid/gold_patches"
    assert patches == {path.stem: path.read_bytes() for path in gold.iterdir()}
    assert not (before / "requirement_patches").exists()


def test_the_command_restores_the_breakers_broken_file(demo, tmp_path: Path) -> None:
    name = next(n for n, e in demo.evidence.items() if e.results.agent == "breaker")
    [broken] = [v.snapshot for v in demo.evidence[name].verdicts if v.regressions]
    where = ["-n", demo.run.at.namespace]

    done = CliRunner().invoke(
        app, ["trial", "restore", name, *where, "--snapshot", str(broken), "--to", str(tmp_path)]
    )

    assert done.exit_code == 0, done.output
    assert (tmp_path / "durations/words.py").read_text().endswith("raise RuntimeError\n")
    rows = json.loads(
        CliRunner().invoke(app, ["trial", "snapshots", name, *where, "-o", "json"]).stdout
    )
    found: list[Any] = [row["snapshot"] for row in rows if row["regressions"]]
    assert found == [broken]


def test_each_pod_was_created_once_and_nothing_more(demo) -> None:
    created = pods_created(demo.audit, demo.run)

    expected = {f"{name}-{role}-1" for name in demo.evidence for role in "ab"}
    inventories = {name for name in created if "-inv-" in name}
    assert set(created) - inventories == expected
    assert set(created.values()) == {1}
