"""Drives a round of a harness that is a program in the task container."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from stayer_evaluator.episode.bench import Bench
from stayer_evaluator.episode.outcome import RoundEnd, command_end, last_line
from stayer_evaluator.harnesses.describe import CommandHarness, HarnessFile, render
from stayer_evaluator.harnesses.transcripts import parser
from stayer_evaluator.records.jobs import Job, JobResult
from stayer_evaluator.records.outcomes import FailureMode

LOG_BYTES = 64 * 1024**2
WRITE_SECONDS = 60.0
PROMPT_FILE = ".stayer/prompt.md"


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of the program."""

    harness: CommandHarness
    prompt: str
    model: str
    env: dict[str, str]


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How it ended and what it left."""

    end: RoundEnd
    output: bytes
    compactions: int | None = None


async def drive_command(bench: Bench, launch: Launch, limit: float) -> CommandEnd:
    """Write the harness's files, run its program to the end of the round. Raises Drained."""
    values = _values(bench, launch, limit)
    if not bench.is_running("run"):
        problem = await _prepare(bench, launch, values)
        if problem:
            return CommandEnd(RoundEnd(FailureMode.AGENT_STARTUP_ERROR, problem), b"")
    left = bench.left(limit)
    if left <= 0:
        return CommandEnd(RoundEnd(FailureMode.AGENT_TIMEOUT, "the round's time is spent"), b"")
    argv = tuple(render(part, values) for part in launch.harness.command)
    env = {name: render(value, values) for name, value in launch.harness.env.items()}
    result = await bench.job(
        "run",
        lambda id_: _job(bench, id_, argv, {**env, **launch.env}, left, LOG_BYTES),
        launch.prompt.encode() if launch.harness.stdin == "prompt" else None,
    )
    output = bench.jobs.log(result.id, LOG_BYTES)
    path = launch.harness.transcript.path
    transcript = output if path is None else read_below(bench.settings.places.home, path, LOG_BYTES)
    account = parser(launch.harness.transcript.parser)(transcript)
    return CommandEnd(command_end(launch.harness, result, account), output, account.compactions)


async def _prepare(bench: Bench, launch: Launch, values: dict[str, str]) -> str:
    """Write the prompt and the harness's files; what went wrong, or nothing."""
    files = [*launch.harness.files, HarnessFile(path=PROMPT_FILE, content="${prompt}")]
    for number, file in enumerate(files):
        result = await _put(bench, launch, number, file, values)
        if result.exit_code != 0:
            detail = last_line(bench.jobs.log(result.id, 4096)) or result.error
            return f"{file.path} could not be written: {detail}"
    return ""


def _values(bench: Bench, launch: Launch, limit: float) -> dict[str, str]:
    side = bench.settings.task_side
    return {
        "prompt": launch.prompt,
        "prompt_file": f"{side.home}/{PROMPT_FILE}",
        "model": launch.model,
        "workspace": side.workspace,
        "home": side.home,
        "seconds": str(int(bench.left(limit))),
    }


async def _put(
    bench: Bench, launch: Launch, number: int, file: HarnessFile, values: dict[str, str]
) -> JobResult:
    side = bench.settings.task_side
    argv = (side.runner, "put", "--dir", side.home, "--mode", file.mode, file.path)
    return await bench.job(
        f"f{number}",
        lambda id_: _job(bench, id_, argv, launch.env, WRITE_SECONDS, 4096),
        render(file.content, values).encode(),
    )


def _job(
    bench: Bench, id_: str, argv: tuple[str, ...], env: dict[str, str], seconds: float, log: int
) -> Job:
    side = bench.settings.task_side
    return Job(
        id=id_,
        argv=argv,
        env=env,
        inherit=("*",),
        cwd=side.workspace,
        uid=side.uid,
        gid=side.uid,
        timeout_seconds=seconds,
        log_limit_bytes=log,
    )


def read_below(root: Path, path: str, limit: int) -> bytes:
    """The first bytes of a regular file below `root`, no link followed; nothing without one."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in Path(path).parent.parts:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = inner
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(Path(path).name, flags, dir_fd=fd)
    except OSError:
        return b""
    finally:
        os.close(fd)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return b""
    with os.fdopen(file, "rb") as content:
        return content.read(limit)
