"""What the recorder is told by its environment, read once."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stayer_evaluator.records import places


class BadSettings(ValueError):  # noqa: N818 (reads as what happened)
    """Environment variables with problems; the message names every one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things lie as the recorder sees them; tests put them elsewhere."""

    jobs: Path = Path(places.JOBS)
    out: Path = Path(places.OUT)
    state: Path = Path(places.STATE)
    workspace: Path = Path(places.WORKSPACE)
    home: Path = Path(places.HOME)
    suite: Path = Path(places.SUITE)
    token: Path = Path(places.TOKEN)
    termination_log: Path = Path(places.TERMINATION_LOG)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSide:
    """Where the same things lie as a job sees them, and as whom it runs."""

    runner: str = places.RUNNER
    workspace: str = places.WORKSPACE
    home: str = places.HOME
    suite: str = places.SUITE
    uid: int = places.AGENT_UID
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds."""

    isolation_patience: float = 30.0
    """Policies may be enforced a little after a pod started (security.md F26)."""
    runner_patience: float = 900.0
    """From /started to the runner's first answer: restore, then the container's own start."""
    result_patience: float = 120.0
    """Beyond a job's limit: ending all its processes takes up to 60 s."""
    store_patience: float = 1800.0
    """How long what must be durable is tried, above the store's own deadline of 300 s."""
    drain_patience: float = 540.0
    """Of the grace period of 600 s."""
    progress_interval: float = 2.0
    trace_interval: float = 5.0
    resume_interval: float = 60.0
    retry_pause: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """Everything but the trial itself."""

    trial: str
    prefix: str
    incarnation: int
    trial_sha256: str
    relay_url: str
    progress_url: str = ""
    must_fail: tuple[tuple[str, int], ...] = ()
    limits: str = ""
    host: str = "0.0.0.0"  # noqa: S104 (the kubelet calls from outside the pod)
    port: int = places.SIDECAR_PORT
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    places: Places = Places()
    task_side: TaskSide = TaskSide()
    timing: Timing = Timing()

    @property
    def writer_name(self) -> str:
        """Name of this process's trace series."""
        return f"recorder-{self.incarnation}-{self.nonce}"


def read_settings(env: Mapping[str, str]) -> RecorderSettings:
    """Settings from environment variables (records/places.py). Raises BadSettings."""
    problems: list[str] = []
    required = (places.ENV_TRIAL, places.ENV_PREFIX, places.ENV_TRIAL_SHA256, places.ENV_RELAY_URL)
    problems += [f"{name} is not set" for name in required if not env.get(name)]
    number = env.get(places.ENV_INCARNATION, "")
    if not number.isdecimal() or int(number) < 1:
        problems.append(f"{places.ENV_INCARNATION} is {number!r}, must be a number from 1")
    must_fail = _addresses(env.get(places.ENV_MUST_FAIL, ""), problems)
    if problems:
        raise BadSettings("; ".join(problems))
    return RecorderSettings(
        trial=env[places.ENV_TRIAL],
        prefix=env[places.ENV_PREFIX],
        incarnation=int(number),
        trial_sha256=env[places.ENV_TRIAL_SHA256],
        relay_url=env[places.ENV_RELAY_URL],
        progress_url=env.get(places.ENV_PROGRESS_URL, ""),
        must_fail=must_fail,
        limits=env.get(places.ENV_LIMITS, ""),
    )


def _addresses(text: str, problems: list[str]) -> tuple[tuple[str, int], ...]:
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            problems.append(f"{places.ENV_MUST_FAIL} holds {part!r}, must be host:port")
            continue
        found.append((host.strip("[]"), int(port)))
    return tuple(found)
