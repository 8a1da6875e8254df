"""Tables over a run's results: columns and rows, without any layout (evaluation.md §7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.run_results import CellSummary, Estimate, RunResults, TrialLine
from stayer_evaluator.scoring.run import summarize_cells

ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})  # phases

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; `note` says what its numbers depend on."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def cell_table(results: RunResults) -> Table:
    """One row a cell, shaped like the published progress table: RR, TPR, depth, regressions.

    While a run goes on only the trials that have ended count; the column TRIALS says how many.
    """
    ended = {
        (cell.agent, cell.model, cell.loop): cell
        for cell in summarize_cells(line for line in results.trials if not is_open(line))
    }
    return Table(
        title="Cells",
        columns=(
            "AGENT", "MODEL", "LOOP", "TRIALS", "RESOLVED", "RR", "TPR", "DEPTH", "REG RATE",
            "REGRESSIONS", "RECOVERIES", "PASS@K", "INFRA",
        ),
        rows=tuple(
            (
                cell.agent,
                cell.model,
                cell.loop,
                *_scores(cell.scheduled, ended.get((cell.agent, cell.model, cell.loop))),
            )
            for cell in results.cells
        ),
        note=_note(results),
    )  # fmt: skip


def trial_table(results: RunResults) -> Table:
    """One row a trial: progress, regressions, order."""
    return Table(
        title="Trials",
        columns=(
            "AGENT", "TASK", "ATTEMPT", "PHASE", "RESOLVED", "TPR", "UNGATED", "DEPTH", "UNITS",
            "REG", "REC", "VIOLATIONS", "ORDER DIFF", "TAU", "ROUNDS", "SNAPSHOTS", "CANARIES",
            "FAILURE MODE",
        ),
        rows=tuple(_trial_row(line) for line in results.trials),
        note=_note(results),
    )  # fmt: skip


def is_open(line: TrialLine) -> bool:
    """Whether a trial has neither ended nor a result; its failure mode `none` says nothing yet."""
    scored = line.metrics is not None or line.failure_mode is not FailureMode.NONE
    return line.phase not in ENDED and not scored


def _scores(scheduled: int, ended: CellSummary | None) -> tuple[Cell, ...]:
    if ended is None:
        return (f"0/{scheduled}", *(None,) * 9)
    return (
        scheduled if ended.scheduled == scheduled else f"{ended.scheduled}/{scheduled}",
        ended.resolved,
        _interval(ended.resolve_rate),
        _interval(ended.tpr),
        _interval(ended.depth),
        _interval(ended.reg_rate),
        ended.reg_events,
        ended.recoveries,
        " ".join(f"{k}:{value:.2f}" for k, value in ended.pass_at_k.items()),
        ended.infra_errors,
    )


def _trial_row(line: TrialLine) -> tuple[Cell, ...]:
    metrics, running = line.metrics, is_open(line)
    return (
        line.agent,
        line.task,
        line.attempt,
        line.phase,
        *(_progress(metrics) if metrics else (None,) * 10),
        metrics.rounds if metrics else None,
        f"{line.snapshots_adjudicated}/{line.snapshots_taken}",
        None if running else line.canaries_run,
        None if running else line.failure_mode.value,
    )


def _progress(metrics: Metrics) -> Sequence[Cell]:
    return (
        metrics.resolved,
        metrics.tpr,
        metrics.tpr_ungated,
        metrics.depth,
        f"{metrics.units_cleared}/{metrics.units_total}",
        metrics.reg_events,
        metrics.recoveries,
        metrics.order_violations,
        metrics.order_diff,
        metrics.kendall_tau,
    )


def _interval(estimate: Estimate | None) -> str | None:
    if estimate is None:
        return None
    return f"{estimate.mean:.3f} [{estimate.low:.2f}, {estimate.high:.2f}] n={estimate.count}"


def _note(results: RunResults) -> str:
    count = sum(map(is_open, results.trials))
    trials = "trial has" if count == 1 else "trials have"
    still = f"{count} {trials} not ended, in no number yet; " if count else ""
    return (
        f"{still}"
        f"test visibility: {results.test_visibility}; network: {results.network}; "
        "intervals: 95 % bootstrap over tasks"
    )
