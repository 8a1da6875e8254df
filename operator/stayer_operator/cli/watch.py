"""Following a run: a progress bar in a terminal, a line per change elsewhere."""

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from stayer_operator.api.wording import counted
from stayer_operator.cli.cluster_access import ClusterAccess, Document
from stayer_operator.cli.documents import has_ended, running, waiting_reason
from stayer_operator.cli.documents import phase as phase_of
from stayer_operator.cli.errors import CliError, TimedOutError
from stayer_operator.cli.output import console

POLL_SECONDS = 2.0


def watch_run(cluster: ClusterAccess, name: str, timeout: float) -> str:
    """Show progress until the run ends; its final phase. A timeout of 0 never ends by itself.

    Raises:
        CliError: the run is gone or was not accepted.
        TimedOutError: it did not end within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout if timeout else float("inf")
    show = _bar if console.is_terminal else _lines
    return show(cluster, name, deadline)


def _bar(cluster: ClusterAccess, name: str, deadline: float) -> str:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(name, total=None, detail="")
        while True:
            run = cluster.run(name)
            total, done = _counts(run)
            progress.update(bar, total=total or None, completed=done, detail=_detail(run))
            if (phase := _ended(run, name, deadline)) is not None:
                return phase
            _pause(deadline)


def _lines(cluster: ClusterAccess, name: str, deadline: float) -> str:
    last = ""
    while True:
        run = cluster.run(name)
        total, done = _counts(run)
        line = f"{name}: {phase_of(run)} {done}/{total} {_detail(run)}"
        if line != last:
            console.print(f"{time.strftime('%H:%M:%S')} {line.rstrip()}", soft_wrap=True)
            last = line
        if (phase := _ended(run, name, deadline)) is not None:
            return phase
        _pause(deadline)


def _pause(deadline: float) -> None:
    time.sleep(max(0.0, min(POLL_SECONDS, deadline - time.monotonic())))


def _ended(run: Document, name: str, deadline: float) -> str | None:
    phase = phase_of(run)
    if has_ended(run):
        return phase
    accepted = _condition(run, "Accepted")
    if accepted is not None and accepted["status"] == "False":
        raise CliError(f"run {name} was not accepted: {accepted.get('message', '')}")
    if time.monotonic() >= deadline:
        reason = waiting_reason(run)
        raise TimedOutError(
            f"run {name} did not end in time; it is {phase}{f'. {reason}' if reason else ''}"
        )
    return None


def _condition(run: Document, kind: str) -> Document | None:
    conditions = run.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), None)


def _counts(run: Document) -> tuple[int, int]:
    trials = run.get("status", {}).get("trials", {})
    done = sum(trials.get(phase, 0) for phase in ("succeeded", "failed", "cancelled"))
    return trials.get("total", 0), done


def _detail(run: Document) -> str:
    status = run.get("status", {})
    active = running(status.get("trials", {}))
    resolved = status.get("resolvedRate")
    parts = [f"{active} running"] if active else []
    parts += [f"resolved {resolved}"] if resolved else []
    parts += [counted(status["regressions"], "regression")] if status.get("regressions") else []
    return ", ".join(parts) or waiting_reason(run)
