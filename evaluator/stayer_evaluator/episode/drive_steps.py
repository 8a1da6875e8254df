"""Drives a round of steps: one job each, a durable snapshot after each."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from stayer_evaluator.episode.bench import Bench
from stayer_evaluator.episode.cursor import next_step
from stayer_evaluator.episode.gold import Gold
from stayer_evaluator.episode.outcome import RoundEnd, describe_result, last_line
from stayer_evaluator.episode.sampler import Sampler
from stayer_evaluator.episode.steps import ApplyDiff, Exit, Hang, Run, Step, Wait, WriteFile
from stayer_evaluator.records.jobs import Job, JobResult
from stayer_evaluator.records.outcomes import FailureMode

TOOL_SECONDS = 600.0
"""The cap of a single tool command (evaluation.md §4)."""
LOG_BYTES = 1024**2
PATCHES = "requirement_patches"


@dataclass(frozen=True, slots=True)
class StepEnv:
    """What every step needs."""

    bench: Bench
    sampler: Sampler
    gold: Gold
    env: dict[str, str]
    log: list[dict[str, Any]]
    """What became of each step, for the trace and the transcript."""


async def drive_steps(work: StepEnv, steps: Sequence[Step], limit: float) -> RoundEnd:
    """Do the steps that are not done yet. Raises Drained, StoreError, Fenced."""
    for index in range(next_step(work.bench.cursor), len(steps)):
        if work.bench.left(limit) <= 0:
            return _spent()
        step = steps[index]
        whole = isinstance(step, ApplyDiff | WriteFile)  # done at once: no state in between
        async with work.sampler.pause() if whole else contextlib.nullcontext():
            since = work.sampler.count
            end = await _step(work, index, step, limit)
            if end is not None and end.failure_mode is FailureMode.AGENT_TIMEOUT:
                return end
            await work.bench.finish_step(index, work.sampler, since)
        if end is not None:
            return end
    return RoundEnd(FailureMode.NONE)


def _spent() -> RoundEnd:
    return RoundEnd(FailureMode.AGENT_TIMEOUT, "the round's time is spent")


async def _step(work: StepEnv, index: int, step: Step, limit: float) -> RoundEnd | None:
    """One step; what it returns ends the round."""
    match step:
        case Exit():
            work.log.append({"step": index, "kind": step.kind, "end": f"code {step.code}"})
            return RoundEnd(step.outcome, f"step {index}: exit {step.code}")
        case Wait():
            return await _wait(work, index, step, limit)
        case ApplyDiff() | WriteFile() | Run() | Hang():
            return await _job(work, index, step, limit)
        case _:
            assert_never(step)


async def _wait(work: StepEnv, index: int, step: Wait, limit: float) -> RoundEnd | None:
    left = work.bench.left(limit)
    await work.bench.wait(min(step.seconds, left))
    work.log.append({"step": index, "kind": step.kind, "end": "waited"})
    return _spent() if step.seconds >= left else None


async def _job(
    work: StepEnv, index: int, step: ApplyDiff | WriteFile | Run | Hang, limit: float
) -> RoundEnd | None:
    side = work.bench.settings.task_side
    argv, stdin = _command(work, step)
    if not argv:
        work.log.append({"step": index, "kind": step.kind, "end": "nothing to apply"})
        return None
    left = work.bench.left(limit)
    cap = left if isinstance(step, Hang) else TOOL_SECONDS
    cap = min(step.timeout_seconds, cap) if isinstance(step, Run) else cap
    result = await work.bench.job(
        f"s{index}",
        lambda id_: Job(
            id=id_,
            argv=tuple(argv),
            env=work.env,
            inherit=("*",),
            cwd=side.workspace,
            uid=side.uid,
            gid=side.uid,
            timeout_seconds=max(0.01, min(cap, left)),
            log_limit_bytes=LOG_BYTES,
        ),
        stdin,
    )
    log = work.bench.jobs.log(result.id, LOG_BYTES)
    work.log.append(_account(index, step, result, log))
    if result.timed_out and left <= cap:
        return _spent()
    return _failed(index, step, result, log)


def _command(
    work: StepEnv, step: ApplyDiff | WriteFile | Run | Hang
) -> tuple[list[str], bytes | None]:
    """Arguments and input of a step's job; no arguments when there is nothing to do."""
    side = work.bench.settings.task_side
    match step:
        case Run():
            return list(step.command), None
        case Hang():
            return [side.runner, "hang"], None
        case WriteFile():
            put = [side.runner, "put", "--dir", side.workspace, "--mode", step.mode, step.path]
            return put, step.content.encode()
        case ApplyDiff():
            diff = work.gold.units.get(step.unit, b"") if step.unit else (step.diff or "").encode()
            patch_of = (step.unit,) if step.unit else step.patch_of
            return apply_command(side.runner, side.workspace, diff, patch_of, step.reverse), diff
        case _:
            assert_never(step)


def apply_command(
    runner: str, workspace: str, diff: bytes, patch_of: Sequence[str], reverse: bool
) -> list[str]:
    """Arguments that apply a diff and copy it to its requirements' patch files, both or neither.

    Taking a patch back leaves its file: the unit has been implemented. An empty diff is nothing.
    """
    if not diff.strip():
        return []
    argv = [runner, "apply", "--dir", workspace]
    if reverse:
        return [*argv, "--reverse", "-"]
    for unit in patch_of:
        argv += ["--also-write", f"{PATCHES}/{unit}.diff"]
    return [*argv, "-"]


def _failed(index: int, step: Step, result: JobResult, log: bytes) -> RoundEnd | None:
    """A command may end as it likes; a diff or file that fails is an error of the script."""
    if isinstance(step, Run) or result.exit_code == 0:
        return None
    detail = last_line(log) or describe_result(result)
    return RoundEnd(FailureMode.UNKNOWN_AGENT_ERROR, f"step {index} ({step.kind}): {detail}")


def _account(index: int, step: Step, result: JobResult, log: bytes) -> dict[str, Any]:
    return {
        "step": index,
        "kind": step.kind,
        "end": describe_result(result),
        "exit_code": result.exit_code,
        "seconds": round(max(0.0, result.ended - result.started), 3),
        "processes_killed": result.processes_killed,
        "oom_kills": result.oom_kills,
        "output": log.decode("utf-8", "replace"),
    }


def transcript(log: Sequence[dict[str, Any]]) -> bytes:
    """The outputs of a round's steps as one text."""
    parts = [
        f"=== step {entry['step']} {entry['kind']}: {entry['end']}\n{entry.get('output', '')}"
        for entry in log
    ]
    return "\n".join(parts).encode("utf-8", "replace")
