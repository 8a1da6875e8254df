"""Programs of the system are found whatever way root was become."""

from __future__ import annotations

import pytest

from local_cluster.cli import with_system_programs


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/usr/bin", "/usr/bin:/usr/local/sbin:/usr/sbin:/sbin", id="su without -"),
        pytest.param(
            "/usr/sbin:/usr/bin", "/usr/sbin:/usr/bin:/usr/local/sbin:/sbin", id="some are there"
        ),
        pytest.param("", "/usr/local/sbin:/usr/sbin:/sbin", id="no PATH at all"),
    ],
)
def test_system_folders_come_last_and_once(path: str, expected: str) -> None:
    assert with_system_programs(path) == expected
