"""`stayer trial`: show, logs, snapshots, restore."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stayer_operator.api.wording import counted
from stayer_operator.cli import store_access
from stayer_operator.cli.cluster_access import ClusterAccess, Document
from stayer_operator.cli.documents import (
    SNAPSHOT_COLUMNS,
    snapshot_rows,
    trial_rows,
    without_bookkeeping,
)
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.options import Namespace, OutputFormat
from stayer_operator.cli.output import Output, console, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Trials of a run.")

Name = Annotated[str, typer.Argument(help="Name of the trial.")]


class Source(StrEnum):
    """Whose log to read."""

    AGENT = "agent"
    RECORDER = "recorder"
    ADJUDICATOR = "adjudicator"
    TESTS = "tests"


# Source -> (role letter in the pod's name, container)
CONTAINERS = {
    Source.AGENT: ("a", "task"),
    Source.RECORDER: ("a", "recorder"),
    Source.ADJUDICATOR: ("b", "adjudicator"),
    Source.TESTS: ("b", "task"),
}


@app.command()
def show(name: Name, namespace: Namespace = None, output: OutputFormat = Output.TABLE) -> None:
    """What a trial is, where it stands and, once it has ended, its score."""
    trial = ClusterAccess(namespace).trial(name)
    results = store_access.trial_results(trial)
    if output is Output.JSON:
        print_json(
            {
                "trial": without_bookkeeping(trial),
                "results": results and results.model_dump(mode="json"),
            }
        )
        return
    print_table(("FIELD", "VALUE"), trial_rows(trial, results))


@app.command()
def logs(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow as it grows.")] = False,
    source: Annotated[Source, typer.Option(help="Whose log.")] = Source.RECORDER,
    namespace: Namespace = None,
) -> None:
    """Log of a trial: of its pods while they exist. Afterwards what was stored: the agent's
    transcript for recorder and agent, the output of tests for adjudicator and tests.
    """
    cluster = ClusterAccess(namespace)
    trial = cluster.trial(name)
    role, container = CONTAINERS[source]
    pods = sorted(p["metadata"]["name"] for p in cluster.pods(trial) if _is_role(p, name, role))
    if pods:
        for line in cluster.logs(pods[-1], container, follow=follow):
            console.print(line, markup=False, soft_wrap=True)
        return
    found = store_access.logs(trial, role)
    if not found:
        raise CliError(f"trial {name} has no pods left and no stored {source.value} log")
    for key, text in found:
        console.print(f"==> {key} <==", markup=False, soft_wrap=True)
        console.print(text, markup=False, soft_wrap=True)


@app.command()
def snapshots(name: Name, namespace: Namespace = None, output: OutputFormat = Output.TABLE) -> None:
    """The snapshots of a trial and what was found on each; TIME counts from the first. PROBLEMS:
    paths that are not stored as they were, named in the JSON.
    """
    trial = ClusterAccess(namespace).trial(name)
    found = store_access.snapshots(trial)
    if output is Output.JSON:
        print_json(found)
        return
    print_table(SNAPSHOT_COLUMNS, snapshot_rows(found))


@app.command()
def restore(
    name: Name,
    to: Annotated[Path, typer.Option(help="Empty or new directory.", show_default=False)],
    snapshot: Annotated[int, typer.Option(help="Number of the snapshot; -1: the last.")] = -1,
    namespace: Namespace = None,
) -> None:
    """Restore a snapshot's workspace into a directory of this machine."""
    trial = ClusterAccess(namespace).trial(name)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise CliError(f"{to}: found something there, accepted: a new or empty directory")
    entry = store_access.restore(trial, snapshot, to)
    console.print(f"snapshot {entry.snapshot} of {name}: {counted(entry.files, 'file')} in {to}")
    if entry.reports:
        console.print(
            f"{counted(len(entry.reports), 'path')} not as the agent left it (special, too large, "
            f"too deep, ...): stayer trial snapshots {name} -o json"
        )


def _is_role(pod: Document, trial: str, role: str) -> bool:
    return str(pod["metadata"]["name"]).startswith(f"{trial}-{role}-")
