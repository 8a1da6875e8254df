"""The `stayer` command."""

import sys

import typer

from stayer_evaluator.storage.store import StoreError
from stayer_operator.cli import run, storage, tasks, trial
from stayer_operator.cli.errors import CliError

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # all commands inherit it
    pretty_exceptions_enable=False,
    help="Runs long-horizon coding-agent benchmarks on Kubernetes.",
)
app.add_typer(run.app, name="run")
app.add_typer(trial.app, name="trial")
app.add_typer(tasks.app, name="tasks")
app.add_typer(storage.app, name="storage")


def main() -> None:
    """Run a command; errors that a person can act on are one message and their exit code."""
    try:
        app()
    except (CliError, StoreError) as error:
        print(f"stayer: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code if isinstance(error, CliError) else 1)
