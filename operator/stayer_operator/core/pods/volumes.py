"""The volumes that both pods of a trial have, and how containers see them."""

from typing import Any

from stayer_evaluator.records import places
from stayer_operator.core.pods.settings import PodSettings

Volume = dict[str, Any]
Mount = dict[str, Any]

RUNNER = "runner"
JOBS = "jobs"
OUT = "out"
WORKSPACE = "workspace"
HOME = "home"
STATE = "state"
SUITE = "suite"
TOKEN = "token"  # noqa: S105 (a volume's name)
SCRATCH = "scratch"
TEMPORARY = "tmp"
LASTING_TEMPORARY = "vartmp"

# What the task container can fill. An eviction that names one of these is the task's doing; our
# sidecar alone writes to the rest.
FILLED_BY_TASK = frozenset({OUT, WORKSPACE, HOME, TEMPORARY, LASTING_TEMPORARY})

_PATHS = {
    RUNNER: places.BIN,
    JOBS: places.JOBS,
    OUT: places.OUT,
    WORKSPACE: places.WORKSPACE,
    HOME: places.HOME,
    STATE: places.STATE,
    SUITE: places.SUITE,
    TOKEN: places.TOKEN.rpartition("/")[0],
    SCRATCH: "/tmp",  # noqa: S108 (of the sidecar's own root file system)
    TEMPORARY: "/tmp",  # noqa: S108
    LASTING_TEMPORARY: "/var/tmp",  # noqa: S108
}


def read(volume: str) -> Mount:
    """The volume at its usual place, read-only."""
    return {"name": volume, "mountPath": _PATHS[volume], "readOnly": True}


def write(volume: str, at: str | None = None) -> Mount:
    """The volume at its usual place, or at `at`, writable."""
    return {"name": volume, "mountPath": at or _PATHS[volume]}


def pair_volumes(settings: PodSettings) -> list[Volume]:
    """What both pods have."""
    limits = settings.volumes
    return [
        _runner(settings),
        _empty(JOBS, limits.jobs),
        _empty(OUT, limits.out),
        _empty(WORKSPACE, limits.workspace),
        _empty(HOME, limits.home),
        _empty(STATE, limits.state),
        _empty(SUITE, limits.suite),
        _empty(SCRATCH, limits.scratch),
        _token(settings),
    ]


def temporary_volumes(settings: PodSettings) -> list[Volume]:
    """Writable places of a task container whose root file system is read-only."""
    limit = settings.volumes.temporary
    return [_empty(TEMPORARY, limit), _empty(LASTING_TEMPORARY, limit)]


def _empty(name: str, limit: str) -> Volume:
    return {"name": name, "emptyDir": {"sizeLimit": limit}}


def _runner(settings: PodSettings) -> Volume:
    if settings.runner_delivery == "init-copy":
        return _empty(RUNNER, settings.volumes.runner)
    image = {"reference": settings.runner_image, "pullPolicy": settings.our_pull_policy}
    return {"name": RUNNER, "image": image}


def _token(settings: PodSettings) -> Volume:
    token = {
        "audience": places.AUDIENCE,
        "expirationSeconds": settings.token_seconds,
        "path": places.TOKEN.rpartition("/")[2],
    }
    return {
        "name": TOKEN,
        "projected": {"defaultMode": 0o400, "sources": [{"serviceAccountToken": token}]},
    }
