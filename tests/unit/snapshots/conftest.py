"""What tests of snapshots begin with."""

from pathlib import Path

import pytest

from makers_snapshots import before_looking


@pytest.fixture(params=["just written", "written long ago"])
def root(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace. What a test writes there is that old when it is collected."""
    monkeypatch.setattr(before_looking, "hold_still", request.param == "written long ago")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace
