"""A run's log and exit → the result of a unit, measured against the inventory. Pure.

What a process prints is its claim; it counts only as far as exit, expected ids and (one level up)
the canaries agree with it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.records.jobs import JobResult
from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.task import InventoryUnit
from stayer_evaluator.records.verdict import UnitResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished run of a suite: what the runner measured and what the log says."""

    job: JobResult
    parsed: Parsed
    strict_exit: bool = True  # the runner's exit code must agree: false for masked whole runs
    log: bytes = b""  # its tail, for people

    @property
    def seconds(self) -> float:
        return max(0.0, self.job.ended - self.job.started)


def judge(expected: InventoryUnit, run: Run) -> UnitResult:
    """The unit's state (evaluation.md §2.3, §10.2).

    Pass only when at least one test ran and every expected case passed. A timeout is a timeout
    whatever was printed; a run that could not be started, or was stopped from outside, is invalid.
    """
    fault = environment_fault(run.job)
    if fault:
        return UnitResult(state=UnitState.INVALID, evidence=fault, seconds=run.seconds)
    seen = dict(run.parsed.cases) if run.parsed.complete and not run.job.timed_out else {}
    cases = {case: seen.get(case, CaseStatus.MISSING) for case in expected.cases}
    known = {*expected.cases, *expected.skipped}
    state, evidence = _state(cases, run)
    return UnitResult(
        state=state,
        cases=cases,
        seconds=run.seconds,
        extra_cases=extra_passes(seen, known),
        evidence=evidence,
    )


def extra_passes(seen: Mapping[str, CaseStatus], known: Collection[str]) -> tuple[str, ...]:
    """Cases that passed and that the inventory does not know (§10.2: evidence of tampering).

    Unknown cases that did not pass help nobody: runners report a file that could not be loaded as
    a failed case of its own.
    """
    passed = (case for case, status in seen.items() if status == CaseStatus.PASSED)
    return tuple(sorted(case for case in passed if case not in known))


def environment_fault(job: JobResult) -> str:
    """Why a run says nothing about the candidate; empty when it does."""
    if job.stopped:
        return "stopped"
    return "environment" if job.error else ""


def own_limit(job: JobResult) -> str:
    """Evidence that a limit of the candidate's own ended the run (evaluation.md §10.4)."""
    if job.oom_kills:
        return "oom"
    return "timeout" if job.timed_out else ""


def _state(cases: Mapping[str, CaseStatus], run: Run) -> tuple[UnitState, str]:
    evidence = own_limit(run.job)
    if run.job.timed_out:
        return UnitState.TIMEOUT, evidence
    values = set(cases.values())
    if CaseStatus.FAILED in values:
        return UnitState.FAIL, evidence
    if not cases or values != {CaseStatus.PASSED} or run.job.signal is not None:
        return UnitState.ERROR, evidence
    if run.strict_exit and run.job.exit_code != 0:
        return UnitState.ERROR, evidence or "exit_code"
    return UnitState.PASS, ""
