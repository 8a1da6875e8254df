"""The operator's process on this machine, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.api import OPERATOR_PODS, SYSTEM_NAMESPACE, Api, BenchError
from bench.numbers import CpuTime, parse_cpu_time, parse_memory
from stayer_operator.adapters.cluster import PODS

PROGRAM = "stayer_operator"
SAMPLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """One process, by its id."""

    pid: int

    def cpu_time(self) -> CpuTime:
        """Spent since it began. Raises FileNotFoundError when it has ended."""
        return parse_cpu_time(Path(f"/proc/{self.pid}/stat").read_text())

    def resident(self) -> int:
        """Bytes resident now."""
        return parse_memory(Path(f"/proc/{self.pid}/status").read_text(), "VmRSS")


async def find_operator(api: Api) -> OperatorProcess:
    """The process of the installed operator. Raises BenchError when it is not on this machine."""
    pods, _ = await api.list(PODS, SYSTEM_NAMESPACE, OPERATOR_PODS)
    uids = [pod["metadata"]["uid"] for pod in pods]
    if len(uids) != 1:
        raise BenchError(f"there are {len(uids)} operator pods in {SYSTEM_NAMESPACE}, not one")
    found = next(_processes_of(uids[0]), None)
    if found is None:
        raise BenchError("the operator's process is not on this machine: its CPU time is unknown")
    return found


def _processes_of(uid: str) -> Iterator[OperatorProcess]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and _is_operator(path, uid):
            yield OperatorProcess(int(path.name))


def _is_operator(path: Path, uid: str) -> bool:
    with suppress(OSError):
        cgroup = (path / "cgroup").read_text().replace("_", "-")
        return uid in cgroup and PROGRAM.encode() in (path / "cmdline").read_bytes()
    return False


@dataclass(slots=True)
class Cost:
    """What a process spent while it was looked at."""

    cpu: CpuTime = field(default_factory=lambda: CpuTime(0.0, 0.0))
    resident_before: int = 0
    resident_peak: int = 0


@asynccontextmanager
async def observed(process: OperatorProcess) -> AsyncIterator[Cost]:
    """Measure from here to the end of the block; the cost is complete then."""
    cost = Cost(resident_before=process.resident())
    began = process.cpu_time()

    async def sample() -> None:
        while True:
            cost.resident_peak = max(cost.resident_peak, process.resident())
            await asyncio.sleep(SAMPLE_SECONDS)

    sampling = asyncio.create_task(sample())
    try:
        yield cost
    finally:
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling
        ended = process.cpu_time()
        cost.cpu = CpuTime(ended.user - began.user, ended.system - began.system)
