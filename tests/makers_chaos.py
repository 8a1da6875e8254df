"""The agent of the chaos tests, and what every disturbed run must come to."""

from __future__ import annotations

from typing import Any

from makers_cluster import Document, Run, describe, phase
from makers_faults import Audit, pods_created
from makers_outcome import Evidence, Outcome, outcome_of, read_evidence, snapshots_taken

SCRIPT = """\
steps:
  - applyDiff: {unit: duration-text}
  - run: {command: [bash, -c, "sleep 3; echo 'raise RuntimeError' >> durations/text.py"]}
  - applyDiff: {unit: duration-words}
  - run: {command: [bash, -c, "sleep 3; sed -i '$d' durations/text.py"]}
  - applyDiff: {unit: retry-schedule}
"""


def scripted(name: str, script: str) -> dict[str, Any]:
    """An agent that does what the script says."""
    return {"name": name, "harness": "scripted", "script": script}


# Clears a unit, breaks it, works on another, repairs it: every kind of event, and time for faults.
WORKER = scripted("worker", SCRIPT)


def finish(run: Run, audit: Audit, seconds: float = 240) -> list[Outcome]:
    """Await the run's end, check what must hold of every run, delete it without trace.

    Returns one outcome an attempt.
    """
    return [outcome_of(evidence) for evidence in finish_with_evidence(run, audit, seconds)]


def finish_with_evidence(run: Run, audit: Audit, seconds: float = 240) -> list[Evidence]:
    """The same, with everything that was found."""
    run.wait_for_end(seconds)
    trials = run.attempts()
    assert trials
    assert {phase(trial) for trial in trials} == {"Succeeded"}, describe(run)
    found = [read_evidence(trial["spec"]["prefix"]) for trial in trials]
    created = pods_created(audit, run)
    assert set(created.values()) == {1}, created
    run.delete()
    run.wait_for_nothing()
    return found


def pod_of(run: Run, role: str) -> Document:
    """The newest pod of the role, of a run with one trial."""
    pods = sorted(run.pods(role), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    assert pods, describe(run)
    return pods[-1]


def wait_for_snapshots(run: Run, number: int) -> None:
    """Wait until every trial has that many durable snapshots: with 2 its first sleep has begun."""

    def there(run: Run) -> bool:
        trials = run.attempts()
        return bool(trials) and all(
            snapshots_taken(trial["spec"]["prefix"]) >= number for trial in trials
        )

    run.wait(there, f"{number} snapshots")
