"""What tests of snapshots begin with."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace
