"""`stayer tasks validate tasks/*` where the folder holds more than tasks."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stayer_operator.cli.main import app

ROOT = Path(__file__).parents[3]
SMALL = ROOT / "examples/tasks/task_durations"


def test_plain_files_are_left_out_and_named(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("tasks")

    done = CliRunner().invoke(app, ["tasks", "validate", str(readme), str(SMALL)])

    assert done.exit_code == 0
    assert f"{readme}: no task directory, left out" in done.output
    assert "3 units, good" in done.output


@pytest.mark.parametrize("there", [True, False])
def test_a_file_alone_and_what_is_not_there_are_refused(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "task"
    if there:
        path.write_text("no folder")

    done = CliRunner().invoke(app, ["tasks", "validate", str(path)])

    assert done.exit_code == 1
    assert str(path) in done.output
