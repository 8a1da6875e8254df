"""examples/runs/demo.yaml, as `make demo` applies it."""

from __future__ import annotations

from types import ModuleType

import pytest
import yaml

from makers_taskset import ROOT, load_demo

RUN = ROOT / "examples/runs/demo.yaml"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return load_demo()


@pytest.mark.parametrize("namespace", ["stayer-runs", "lab"])
def test_it_is_applied_in_the_namespace_that_is_asked_for(demo: ModuleType, namespace: str) -> None:
    given = yaml.safe_load(RUN.read_text())

    applied = yaml.safe_load(demo.in_namespace(RUN.read_text(), namespace))

    assert given["metadata"]["namespace"] == "stayer-runs"
    assert applied["metadata"] == {"name": demo.run_name(RUN), "namespace": namespace}
    assert applied["spec"] == given["spec"]
