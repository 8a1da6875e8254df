"""The job protocol between a sidecar and the runner (PID 1 of the task container).

The sidecar writes `/stayer/jobs/<id>.json` and then the line `<id>\\n` into the FIFO
`/stayer/jobs/fifo`. The runner answers with `/stayer/out/<id>.json` (written under another name and
renamed) and `/stayer/out/<id>.log` (stdout and stderr together). All of `out/` is a claim.
"""

from typing import Literal

from pydantic import Field

from stayer_evaluator.records.base import Record


class Job(Record):
    """One job. `exec` runs argv; `wipe` empties directories; `quit` ends the container."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    kind: Literal["exec", "wipe", "quit"] = "exec"
    argv: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, description="the environment")
    inherit: tuple[str, ...] = Field(
        default=(),
        description="variables taken from the container's own environment (the image's ENV) where "
        "`env` does not set them; `*` = all but KUBERNETES_*",
    )
    cwd: str = "/workspace"
    uid: int = Field(default=10001, ge=0)
    gid: int = Field(default=10001, ge=0)
    timeout_seconds: float = Field(default=600, gt=0)
    log_limit_bytes: int = Field(default=16 * 1024**2, ge=0)
    open_files: int = Field(default=4096, ge=16)
    stdin: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?$",
        description="file in the job directory given as standard input; empty: nothing. "
        "The directory is closed to the job itself",
    )
    paths: tuple[str, ...] = Field(default=(), description="wipe: directories to empty")
    exit_code: int = Field(default=0, ge=0, le=255, description="quit: of the container")


class JobResult(Record):
    """What the runner says of a job."""

    id: str
    kind: Literal["exec", "wipe", "quit"]
    started: float
    ended: float
    exit_code: int | None = Field(description="null when a signal ended it or it never started")
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = Field(default=False, description="ended because the runner got SIGTERM")
    processes_killed: int = Field(default=0, description="left-over processes ended after the job")
    oom_kills: int = Field(default=0, description="OOM kills in the container during the job")
    log_bytes: int = 0
    log_truncated: bool = False
    user_seconds: float = 0
    system_seconds: float = 0
    max_rss_bytes: int = 0
    error: str = Field(default="", description="why it could not be started or wiped")
    runner: str = Field(default="", description="version of the runner")
