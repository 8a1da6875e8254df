"""`stayer run`: plan, apply, list, watch, results, rerun, cancel."""

import time
from pathlib import Path
from typing import Annotated

import typer

from stayer_evaluator.scoring.tables import cell_table, trial_table
from stayer_operator.api.wording import counted
from stayer_operator.cli import again, documents, planning, store_access
from stayer_operator.cli.cluster_access import ClusterAccess, Document
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.options import Namespace, OutputFormat
from stayer_operator.cli.output import Output, console, print_json, print_table
from stayer_operator.cli.watch import watch_run

app = typer.Typer(no_args_is_help=True, help="Benchmark runs.")

RUN_COLUMNS = ("NAME", "BENCHMARK", "PHASE", "TRIALS", "RUNNING", "RESOLVED", "REGRESSIONS", "AGE")

Name = Annotated[str, typer.Argument(help="Name of the run.")]
File = Annotated[
    Path, typer.Option("--filename", "-f", help="Manifest of one BenchmarkRun.", show_default=False)
]


@app.command()
def plan(filename: File, namespace: Namespace = None, output: OutputFormat = Output.TABLE) -> None:
    """Show what a run would create: cells, pods, CPU, memory, expected hours. Creates nothing."""
    manifest = documents.read_run(filename)
    if namespace:
        manifest["metadata"]["namespace"] = namespace
    found = planning.run_prospect(manifest)
    if output is Output.JSON:
        print_json(found.as_document())
        return
    columns = ("TASK", "AGENT", "MODEL", "LOOP", "ATTEMPTS", "AGENT LIMIT")
    print_table(columns, planning.cell_rows(found))
    for line in planning.lines(found):
        console.print(line)


@app.command("apply")
def apply_(filename: File, namespace: Namespace = None) -> None:
    """Create a run or change one, as `kubectl apply --server-side` does, with strict fields."""
    manifest = documents.read_run(filename)
    cluster = ClusterAccess(namespace or manifest["metadata"].get("namespace"))
    run, what = cluster.apply_run(manifest)
    console.print(f"benchmarkrun.stayer.dev/{run['metadata']['name']} {what}")


@app.command("list")
def list_(
    namespace: Namespace = None,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Runs of all namespaces.")
    ] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """All runs of the namespace."""
    runs = ClusterAccess(namespace).runs(everywhere=everywhere)
    if output is Output.JSON:
        print_json([documents.without_bookkeeping(run) for run in runs])
        return
    rows = [documents.run_row(run, time.time()) for run in runs]
    if everywhere:
        rows = [(r["metadata"]["namespace"], *row) for r, row in zip(runs, rows, strict=True)]
    print_table(("NAMESPACE", *RUN_COLUMNS) if everywhere else RUN_COLUMNS, rows)


@app.command()
def watch(
    name: Name,
    namespace: Namespace = None,
    timeout: Annotated[float, typer.Option(help="Give up after so many seconds; 0: never.")] = 0,
) -> None:
    """Follow a run until it ends.

    Exit code 0: it succeeded. 1: it failed, was cancelled, was not accepted or is not there.
    2: it goes on after --timeout.
    """
    phase = watch_run(ClusterAccess(namespace), name, timeout)
    if phase != "Succeeded":
        raise typer.Exit(1)


@app.command()
def results(name: Name, namespace: Namespace = None, output: OutputFormat = Output.TABLE) -> None:
    """The scores of a run: one table a cell, one a trial; of the trials that have ended so far."""
    cluster = ClusterAccess(namespace)
    run = cluster.run(name)
    report = store_access.run_results(run, cluster.trials(run))
    if output is Output.JSON:
        print_json(report.model_dump(mode="json"))
        return
    for table in (cell_table(report), trial_table(report)):
        print_table(table.columns, table.rows)
        console.print()
    console.print(cell_table(report).note)


@app.command()
def rerun(
    name: Name,
    which: Annotated[
        list[documents.Outcome] | None,
        typer.Option(help="Outcomes to run again; may be repeated."),
    ] = None,
    namespace: Namespace = None,
) -> None:
    """Run the trials of an ended run again that ended so (default: infra_error)."""
    cluster = ClusterAccess(namespace)
    run = cluster.run(name)
    if run["spec"].get("cancel"):
        raise CliError(f"run {name} was cancelled and cannot go on; apply a new run instead")
    if not documents.has_ended(run):
        raise CliError(f"run {name} has not ended ({documents.phase(run)}): nothing runs again yet")
    chosen = [outcome.value for outcome in which or [documents.Outcome.INFRA_ERROR]]
    count = len(again.go_again(cluster.trials(run), frozenset(chosen)))
    matching = f"{counted(count, 'trial')} {'matches' if count == 1 else 'match'}"
    if not count:
        console.print(f"run {name}: {matching} {' or '.join(chosen)}: nothing to do")
        return
    generation = run["spec"].get("rerun", {}).get("generation", 0) + 1
    cluster.patch_run(name, {"rerun": {"generation": generation, "which": chosen}})
    goes = "goes" if count == 1 else "go"
    console.print(
        f"run {name}: {matching} {' or '.join(chosen)} and {goes} again (rerun {generation})",
        soft_wrap=True,
    )


@app.command()
def cancel(name: Name, namespace: Namespace = None) -> None:
    """Stop a run for good: its pods are deleted, its evidence stays."""
    cluster = ClusterAccess(namespace)
    before = cluster.run(name)
    if documents.has_ended(before):
        raise CliError(f"run {name} has ended already ({documents.phase(before)})")
    run: Document = cluster.patch_run(name, {"cancel": True})
    if run["spec"].get("cancel") is not True:
        raise CliError(f"run {name}: the cluster did not keep spec.cancel")
    console.print(f"run {name}: cancelling")
