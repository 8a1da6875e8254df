"""What helm itself has to say of the chart."""

import subprocess

import pytest

from makers_chart import CHART, find_helm

pytestmark = pytest.mark.helm


def test_helm_finds_nothing_wrong() -> None:
    helm = find_helm()
    assert helm is not None

    result = subprocess.run(
        [helm, "lint", "--strict", "--quiet", CHART], capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr
