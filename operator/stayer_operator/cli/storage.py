"""`stayer storage`: report and prune."""

import asyncio
from typing import Annotated

import typer

from stayer_evaluator.snapshots.prune import PrunePlan, plan_prune
from stayer_evaluator.snapshots.usage import usage_by_prefix
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.cli import store_access
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.options import OutputFormat
from stayer_operator.cli.output import Output, console, print_json, print_table, size

app = typer.Typer(no_args_is_help=True, help="What lies in the object store.")


@app.command()
def report(
    prefix: Annotated[
        str, typer.Argument(help="Only what lies below it, e.g. runs/<namespace>/.")
    ] = "",
    output: OutputFormat = Output.TABLE,
) -> None:
    """How much the evidence of each run and the bundle of each task take."""
    found = usage_by_prefix(asyncio.run(store_access.open_store().sizes(prefix)))
    if output is Output.JSON:
        print_json([usage._asdict() for usage in found])
        return
    rows = [(u.prefix, u.trials, u.objects, size(u.bytes), size(u.states)) for u in found]
    print_table(("PREFIX", "TRIALS", "OBJECTS", "BYTES", "OF THESE STATES"), rows)


@app.command()
def prune(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs that have ended: runs/<namespace>/<run>-<uid8>/.", show_default=False
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="Digest of a task whose bundle goes; may be repeated."),
    ] = None,
    keep_results: Annotated[
        bool, typer.Option(help="Only workspace states go; verdicts, traces and results stay.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it only say what.")] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Delete the evidence of runs that have ended. Nothing brings it back."""
    plan = asyncio.run(
        prune_store(
            store_access.open_store(),
            tuple(runs or ()),
            tuple(task or ()),
            keep_results=keep_results,
            delete=yes,
        )
    )
    if output is Output.JSON:
        print_json({"deleted": yes, "objects": dict(plan.by_prefix)})
        return
    print_table(("PREFIX", "OBJECTS"), plan.by_prefix)
    console.print("deleted" if yes else "nothing was deleted; --yes deletes them")


async def prune_store(
    store: MutableStore,
    runs: tuple[str, ...],
    tasks: tuple[str, ...],
    *,
    keep_results: bool,
    delete: bool,
) -> PrunePlan:
    """What goes, in the order of its going; gone where `delete` says so. Safe to repeat.

    Raises CliError where nothing is named, or something that is no run's prefix.
    """
    if not runs and not tasks:
        raise CliError("found neither a run nor --task, accepted: at least one of them")
    keys = [
        key
        for prefix in (*runs, *(f"tasks/{digest}/" for digest in tasks))
        for key in await store.keys(prefix)
    ]
    try:
        plan = plan_prune(keys, runs=runs, tasks=tasks, keep_results=keep_results)
    except ValueError as error:
        raise CliError(str(error)) from error
    if delete:
        await store.delete(list(plan.delete))
    return plan
