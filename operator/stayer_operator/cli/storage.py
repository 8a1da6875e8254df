"""`stayer storage`: report and prune."""

import asyncio
import re
from typing import Annotated

import typer

from stayer_evaluator.snapshots.prune import PrunePlan, plan_prune
from stayer_evaluator.snapshots.usage import usage_by_prefix
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.cli import store_access
from stayer_operator.cli.cluster_access import ClusterAccess
from stayer_operator.cli.documents import has_ended, phase
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.options import OutputFormat
from stayer_operator.cli.output import Output, console, print_json, print_table, size

RUN_PREFIX = re.compile(r"runs/(?P<namespace>[^/]+)/(?P<run>[^/]+)-(?P<uid>[0-9a-f]{8})/")

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
    """Delete the evidence of runs that have ended. Nothing brings it back.

    Refused for a run that the cluster knows and that goes on.
    """
    prefixes = tuple(with_slash(prefix) for prefix in runs or ())
    store = store_access.open_store()
    _refuse_unended(prefixes)
    plan = asyncio.run(
        prune_store(
            store,
            prefixes,
            tuple(task or ()),
            keep_results=keep_results,
            delete=yes,
        )
    )
    if output is Output.JSON:
        print_json({"deleted": yes, "objects": dict(plan.by_prefix)})
        return
    print_table(("PREFIX", "OBJECTS"), [(p, n or "nothing there") for p, n in plan.by_prefix])
    console.print("deleted" if yes else "nothing was deleted; --yes deletes them")


def with_slash(prefix: str) -> str:
    """The prefix of a run as it may be typed, closed."""
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _refuse_unended(prefixes: tuple[str, ...]) -> None:
    """Raises CliError for the first run that goes on; says so where no cluster can be asked."""
    for prefix in prefixes:
        parts = RUN_PREFIX.fullmatch(prefix)
        if parts is None:  # refused later, with all that is accepted
            continue
        try:
            run = ClusterAccess(parts["namespace"]).find_run(parts["run"])
        except CliError as error:
            typer.echo(f"not asked whether the runs have ended: {error}", err=True)
            return
        if run is None or not str(run["metadata"]["uid"]).startswith(parts["uid"]):
            continue
        if not has_ended(run):
            raise CliError(
                f"run {parts['run']} in namespace {parts['namespace']} has not ended "
                f"({phase(run)}) and writes to {prefix}; cancel or delete it first"
            )


async def prune_store(
    store: MutableStore,
    runs: tuple[str, ...],
    tasks: tuple[str, ...],
    *,
    keep_results: bool,
    delete: bool,
) -> PrunePlan:
    """What goes, in the order of its going; gone where `delete` says so. Safe to repeat.

    Raises CliError where nothing is named, something that is no run's prefix, or where nothing lies
    under all that is named.
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
    if not keys:
        raise CliError(f"{', '.join(prefix for prefix, _ in plan.by_prefix)}: nothing there")
    if delete:
        await store.delete(list(plan.delete))
    return plan
