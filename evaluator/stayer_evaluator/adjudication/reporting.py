"""What the process says of itself: progress while it works, a termination message at its end."""

from stayer_evaluator.adjudication.session import Outcome
from stayer_evaluator.records.reports import ProgressReport, TerminationMessage
from stayer_evaluator.storage.retry import StoreCounters


class LatestProgress:
    """Keeps the newest report for whoever sends it."""

    def __init__(self, trial: str, incarnation: int, counters: StoreCounters | None = None) -> None:
        self._latest = ProgressReport(trial=trial, role="b", incarnation=incarnation)
        self._counters = counters or StoreCounters()

    def report(self, report: ProgressReport) -> None:
        """Replace the present one."""
        self._latest = report

    def current(self) -> ProgressReport:
        """The newest report, with what went over the wire so far."""
        wire = {"store_errors": self._counters.errors, "store_requests": self._counters.total}
        return self._latest.model_copy(update=wire)


def results_message(outcome: Outcome, progress: ProgressReport) -> TerminationMessage:
    """The hint that saves the operator a read of results.json or inventory.json."""
    results, inventory = outcome.results, outcome.inventory
    metrics = results.metrics
    return TerminationMessage(
        kind="results",
        message=results.message[:500],
        failure_mode=results.failure_mode,
        rounds=metrics.rounds if metrics else None,
        snapshots_taken=results.snapshots_taken,
        snapshots_adjudicated=results.snapshots_adjudicated,
        resolved=metrics.resolved if metrics else None,
        valid=results.valid,
        units_cleared=metrics.units_cleared if metrics else progress.units_cleared,
        units_total=metrics.units_total if metrics else progress.units_total,
        regressions=metrics.reg_events if metrics else None,
        recoveries=metrics.recoveries if metrics else None,
        accepted=inventory.accepted if inventory else None,
        problems=inventory.problems if inventory else (),
    )
