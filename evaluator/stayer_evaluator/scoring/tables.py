"""Tables over a run's results: columns and rows, without any layout (evaluation.md §7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.run_results import Estimate, RunResults, TrialLine

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; `note` says what its numbers depend on."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def cell_table(results: RunResults) -> Table:
    """One row a cell, shaped like the published progress table: RR, TPR, depth, regressions."""
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
                cell.scheduled,
                cell.resolved,
                _interval(cell.resolve_rate),
                _interval(cell.tpr),
                _interval(cell.depth),
                _interval(cell.reg_rate),
                cell.reg_events,
                cell.recoveries,
                " ".join(f"{k}:{value:.2f}" for k, value in cell.pass_at_k.items()),
                cell.infra_errors,
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


def _trial_row(line: TrialLine) -> tuple[Cell, ...]:
    metrics = line.metrics
    return (
        line.agent,
        line.task,
        line.attempt,
        line.phase,
        *(_progress(metrics) if metrics else (None,) * 10),
        metrics.rounds if metrics else None,
        f"{line.snapshots_adjudicated}/{line.snapshots_taken}",
        line.canaries_run,
        line.failure_mode.value,
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
    return (
        f"test visibility: {results.test_visibility}; network: {results.network}; "
        "intervals: 95 % bootstrap over tasks"
    )
