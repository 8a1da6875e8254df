"""The agent of the chaos tests, and what every disturbed run must come to."""

from __future__ import annotations

from makers_cluster import Run, describe, phase
from makers_faults import Audit, pods_created
from makers_outcome import Evidence, Outcome, outcome_of, read_evidence

SCRIPT = """\
steps:
  - applyDiff: {unit: duration-text}
  - run: {command: [bash, -c, "sleep 3; echo 'raise RuntimeError' >> durations/text.py"]}
  - applyDiff: {unit: duration-words}
  - run: {command: [bash, -c, "sleep 3; sed -i '$d' durations/text.py"]}
  - applyDiff: {unit: retry-schedule}
"""
# Clears a unit, breaks it, works on another, repairs it: every kind of event, and time for faults.
WORKER = {"name": "worker", "harness": "scripted", "script": SCRIPT}


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
