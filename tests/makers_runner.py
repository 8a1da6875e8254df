"""A real runner as PID 1 of its own PID namespace, with an interpreter that candidates can run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from local_cluster import gotool
from local_cluster.console import Console
from local_cluster.pins import load_pins
from local_cluster.settings import SOURCE as LOCAL_CLUSTER
from local_cluster.settings import find_places

SOURCES = Path(__file__).resolve().parent.parent / "images/runner"

# The runner wipes what is writable in a task container, /tmp first of all. So it never sees the
# machine's own: its mount and IPC namespaces are private, and it is not started unless every place
# that could be wiped is an empty file system of its own. The test's interpreter may lie where only
# root may go, therefore it is there a second time below the box.
_START = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$2/python"
mount -o remount,bind,ro "$2/python"
mount --bind "$3" "$2/site-packages"
mount -o remount,bind,ro "$2/site-packages"
for place in /tmp /var/tmp /dev/shm /dev/mqueue; do
    test -d "$place" || continue
    mount -t tmpfs -o mode=1777 box "$place"
    test "$(stat -f -c %T "$place")" = tmpfs
    test -z "$(ls -A "$place")"
done
exec "$2/runner" serve --jobs "$2/jobs" --out "$2/out"
"""
#: Outside every place that a task container may wipe, and open to all uids.
BOXES = Path("/run")


# All that pytest needs, and none of the plugins that the test's own environment has.
_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py.py")


@cache
def find_go() -> Path:
    """The Go that the local cluster is built with; it is fetched where the machine has none."""
    pins = load_pins(LOCAL_CLUSTER / "versions.toml")
    return gotool.find_go(pins, find_places(None, os.environ), Console())


@cache
def runner_program() -> Path:
    """The runner, built from its sources unless that was done before."""
    whole = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.go")):
        whole.update(path.read_bytes())
    target = Path(tempfile.gettempdir()) / f"stayer-runner-{whole.hexdigest()[:16]}"
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [find_go(), "build", "-trimpath", "-o", str(partial), "."],
            cwd=SOURCES,
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            check=True,
        )
        partial.rename(target)
    return target


@dataclass(frozen=True)
class Box:
    """Folders of a task container, and the process that is its runner."""

    root: Path
    process: subprocess.Popen[bytes]

    @property
    def jobs(self) -> Path:
        return self.root / "jobs"

    @property
    def out(self) -> Path:
        return self.root / "out"


@contextmanager
def task_container(variables: Mapping[str, str] | None = None) -> Iterator[Box]:
    """A runner with empty workspace, home, suite, tmp; `variables` is the image's environment."""
    root = Path(tempfile.mkdtemp(prefix="stayer-box-", dir=BOXES))
    root.chmod(0o755)
    for name in ("jobs", "out", "workspace", "home", "suite", "state", "python", "site-packages"):
        (root / name).mkdir()
    shutil.copy(runner_program(), root / "runner")
    _lay_interpreter(root)
    os.mkfifo(root / "jobs/fifo", 0o600)
    command = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
               "sh", "-c", _START, "sh", sys.base_prefix, str(root),
               sysconfig.get_path("purelib")]  # fmt: skip
    path = f"{root}/venv/bin:{os.environ['PATH']}"
    process = subprocess.Popen(
        command, env={"PATH": path, **(variables or {})}, stderr=subprocess.DEVNULL
    )
    try:
        yield Box(root, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(root, ignore_errors=True)


def _lay_interpreter(root: Path) -> None:
    """A virtual environment whose Python is the test's own, by the paths inside the box."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = root / "venv/lib" / version / "site-packages"
    packages.mkdir(parents=True)
    for name in _PYTEST:
        (packages / name).symlink_to(root / "site-packages" / name)
    (root / "venv/bin").mkdir()
    (root / "venv/bin/python3").symlink_to(root / "python/bin" / version)
    (root / "venv/pyvenv.cfg").write_text(f"home = {root}/python/bin\nversion = 3\n")
