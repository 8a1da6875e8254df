"""`stayer storage`: prune."""

import asyncio
from typing import Annotated

import typer

from stayer_evaluator.snapshots.prune import PrunePlan, plan_prune
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.cli import store_access
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.output import console, print_table

app = typer.Typer(no_args_is_help=True, help="What lies in the object store.")


@app.callback()
def storage() -> None:
    """Keeps `prune` a command of its own while it is the only one."""


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
