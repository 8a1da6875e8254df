"""Options that several commands share."""

from typing import Annotated

import typer

from stayer_operator.cli.output import Output

Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace; default: the kubeconfig's.", show_default=False
    ),
]
OutputFormat = Annotated[Output, typer.Option("--output", "-o", help="table or json.")]
