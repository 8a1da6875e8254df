"""Both ways to ask for help, at every command."""

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from stayer_operator.cli.main import app


def paths() -> Iterator[tuple[str, ...]]:
    yield ()
    for group, inner in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        yield (group,)
        yield from ((group, name) for name in inner.commands)


@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_a_command_explains_itself(path: tuple[str, ...], option: str) -> None:
    said = CliRunner().invoke(app, [*path, option])

    assert said.exit_code == 0
    assert "Usage:" in said.stdout
