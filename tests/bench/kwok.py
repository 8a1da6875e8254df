"""kwok, built where it is missing, run for as long as a bench takes, ended by its recorded id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.api import MINE
from bench.simulated import stages
from local_cluster.console import Console
from local_cluster.pins import load_pins
from local_cluster.processes import ProcessTable
from local_cluster.products import build_products, make_recipes
from local_cluster.settings import SOURCE, find_places

KWOK = "kwok"
PATIENCE_SECONDS = 10.0


def build_kwok() -> Path:
    """The program, from the local cluster's cache or built into it (versions.toml pins it)."""
    pins, places = load_pins(SOURCE / "versions.toml"), find_places(None, os.environ)
    recipes = make_recipes(pins, pins.kubernetes_version, [KWOK])
    mine = [recipe for recipe in recipes if recipe.name == KWOK]
    return build_products(mine, pins, places, Console())[KWOK] / KWOK


def end_kwok(state: Path) -> None:
    """End the one that was started with this state, if it still runs."""
    _table(state).stop(KWOK, PATIENCE_SECONDS)


@contextmanager
def kwok_running(program: Path, state: Path) -> Iterator[Path]:
    """Manage our simulated nodes and no others; the log's path while the block runs."""
    end_kwok(state)
    configuration = state / "stages.yaml"
    configuration.parent.mkdir(parents=True, exist_ok=True)
    configuration.write_text(stages())
    log = state / "kwok.log"
    log.unlink(missing_ok=True)
    command = [
        str(program),
        f"--kubeconfig={os.environ['KUBECONFIG']}",
        f"--config={configuration}",
        f"--manage-nodes-with-label-selector={MINE}",
        "--node-lease-duration-seconds=40",
    ]
    try:
        _table(state).start(KWOK, command, content="", log=log, env=dict(os.environ))
        yield log
    finally:
        end_kwok(state)


def _table(state: Path) -> ProcessTable:
    return ProcessTable(state, state / "processes")
