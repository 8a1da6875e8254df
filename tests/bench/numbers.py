"""Arithmetic of measurements: percentiles, and what /proc says of a process."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: the smallest value that at least `percent` of all do not exceed.

    Raises ValueError without values: there is no such thing then.
    """
    if not values:
        raise ValueError("no values, no percentile")
    if not 0 < percent <= 100:
        raise ValueError(f"percent: found {percent}, accepted: above 0, up to 100")
    return sorted(values)[math.ceil(percent / 100 * len(values)) - 1]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds on a CPU, of all threads together."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system


def parse_cpu_time(stat: str, ticks_per_second: int | None = None) -> CpuTime:
    """utime and stime of a /proc/PID/stat line; the name in it may hold spaces and brackets."""
    ticks = ticks_per_second or os.sysconf("SC_CLK_TCK")
    after_name = stat.rpartition(")")[2].split()
    # proc(5): fields 14 and 15, and the state after the name is field 3.
    return CpuTime(user=int(after_name[11]) / ticks, system=int(after_name[12]) / ticks)


def parse_memory(status: str, field: str) -> int:
    """Bytes in a field of /proc/PID/status: VmRSS is resident now, VmHWM was at most.

    Raises KeyError when the field is not there: of a process that has ended, for one.
    """
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == field:
            amount, unit = value.split()
            if unit != "kB":
                raise ValueError(f"{field}: found unit {unit}, accepted: kB")
            return int(amount) * 1024
    raise KeyError(field)
