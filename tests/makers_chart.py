"""Renders the chart."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "helm/stayer"
NAMESPACE = "stayer-system"


def find_helm() -> str | None:
    """helm in PATH, or the one that the local cluster built."""
    state = os.environ.get("STAYER_CLUSTER_STATE") or Path.home() / ".local/state/stayer/cluster"
    places = [os.environ.get("STAYER_BIN", ""), str(Path(state) / "bin"), os.environ["PATH"]]
    return shutil.which("helm", path=os.pathsep.join(places))


@cache
def _render(flags: tuple[str, ...]) -> tuple[int, str, str]:
    helm = find_helm()
    assert helm is not None
    command = [helm, "template", "stayer", str(CHART), "--namespace", NAMESPACE]
    result = subprocess.run(
        [*command, "--kube-version", "1.37.2", *flags], capture_output=True, text=True, check=False
    )
    return result.returncode, result.stdout, result.stderr


def render(**values: str) -> list[dict[str, Any]]:
    """The objects that the chart makes with `--set a.b=c`; dots are written as two underscores."""
    code, out, error = _render(_flags(values))
    assert code == 0, error
    return [document for document in yaml.safe_load_all(out) if document]


def refuse(**values: str) -> str:
    """What helm complains of; fails when it does not."""
    code, _, error = _render(_flags(values))
    assert code != 0
    return error


def _flags(values: Mapping[str, str]) -> tuple[str, ...]:
    pairs = [f"{name.replace('__', '.')}={value}" for name, value in values.items()]
    return tuple(flag for pair in pairs for flag in ("--set", pair))


def pick(
    objects: list[dict[str, Any]], kind: str, name: str, namespace: str | None = None
) -> dict[str, Any]:
    """The one object of a kind and name."""
    found = [
        item
        for item in objects
        if item["kind"] == kind
        and item["metadata"]["name"] == name
        and namespace in (None, item["metadata"].get("namespace"))
    ]
    assert len(found) == 1, [(i["kind"], i["metadata"]["name"]) for i in objects]
    return found[0]
