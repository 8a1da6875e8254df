"""What the task image offers for running tests: its PATH and its Python with pytest.

Asked once, by the inventory run, of the untouched image: whatever an agent adds later to PATH,
HOME or the workspace never becomes an interpreter (security.md A4, A11).
"""

from dataclasses import dataclass

from stayer_evaluator.adjudication.ports import Jobs, Places
from stayer_evaluator.adjudication.suites.suite import DEFAULT_PATH
from stayer_evaluator.records.jobs import Job
from stayer_evaluator.records.places import FIRST_CANDIDATE_UID

_SECONDS = 120.0
_MARK = "stayer-interpreter:"
_PROBE = f"import sys, pytest; print('{_MARK}' + sys.executable, pytest.__version__)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """`interpreter` is empty when the image has no Python with pytest outside writable places."""

    path: str
    interpreter: str
    pytest: str = ""


async def look_at_image(jobs: Jobs, places: Places, label: str) -> Image:
    """Ask the container. Raises RunnerLost."""
    path = await _image_path(jobs, places, label)
    job = Job(
        id=f"{label}-python",
        argv=("/usr/bin/env", "python3", "-I", "-B", "-c", _PROBE),
        env={"PATH": path, "LANG": "C.UTF-8", "HOME": places.within("home")},
        cwd="/",
        uid=FIRST_CANDIDATE_UID,
        gid=FIRST_CANDIDATE_UID,
        timeout_seconds=_SECONDS,
    )
    done = await jobs.run(job)
    for line in done.log.decode("utf-8", "replace").splitlines():
        if done.result.exit_code == 0 and line.startswith(_MARK):
            interpreter, _, version = line.removeprefix(_MARK).rpartition(" ")
            if interpreter.startswith("/") and not _writable(interpreter, places):
                return Image(path=path, interpreter=interpreter, pytest=version)
    return Image(path=path, interpreter="")


async def _image_path(jobs: Jobs, places: Places, label: str) -> str:
    """PATH as the image sets it, without folders that a candidate may write to."""
    job = Job(
        id=f"{label}-path",
        argv=("/usr/bin/env",),
        inherit=("PATH",),
        cwd="/",
        uid=FIRST_CANDIDATE_UID,
        gid=FIRST_CANDIDATE_UID,
        timeout_seconds=_SECONDS,
    )
    done = await jobs.run(job)
    lines = done.log.decode("utf-8", "replace").splitlines()
    found = next((line[5:] for line in lines if line.startswith("PATH=")), DEFAULT_PATH)
    folders = [f for f in found.split(":") if f.startswith("/") and not _writable(f, places)]
    return ":".join(folders) or DEFAULT_PATH


def _writable(path: str, places: Places) -> bool:
    """The path lies where a candidate may write."""
    roots = (places.within("workspace"), places.within("home"), *places.wiped)
    return any(path == root or path.startswith(f"{root}/") for root in roots)
