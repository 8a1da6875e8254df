"""Percentiles and what /proc says."""

from __future__ import annotations

import pytest

from bench.numbers import parse_cpu_time, parse_memory, percentile

STAT = (
    "4711 (python3 (x) y) S 1 4711 4711 0 -1 4194560 5000 0 12 0 "
    "250 50 7 8 20 0 18 0 39812 1265463296 27100 18446744073709551615"
)
STATUS = "Name:\tpython3\nVmHWM:\t  126752 kB\nVmRSS:\t  104084 kB\nThreads:\t18\n"


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param([7.0], 99, 7.0, id="one value is every percentile"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 50, 2.0, id="the lower middle of an even number"),
        pytest.param([1.0, 2.0, 3.0], 50, 2.0, id="the middle of an odd number"),
        pytest.param([float(n) for n in range(1, 51)], 99, 50.0, id="p99 of 50 is the largest"),
        pytest.param([float(n) for n in range(1, 101)], 99, 99.0, id="p99 of 100 is the 99th"),
        pytest.param([3.0, 1.0, 2.0], 100, 3.0, id="p100 is the largest"),
    ],
)
def test_percentiles_are_values_that_were_seen(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected


@pytest.mark.parametrize("percent", [0, -1, 101])
def test_percents_out_of_range_are_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="percent"):
        percentile([1.0], percent)


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_cpu_time_is_read_behind_the_name() -> None:
    cpu = parse_cpu_time(STAT, ticks_per_second=100)

    assert (cpu.user, cpu.system, cpu.total) == (2.5, 0.5, 3.0)


def test_memory_is_in_bytes() -> None:
    assert parse_memory(STATUS, "VmRSS") == 104084 * 1024
    assert parse_memory(STATUS, "VmHWM") == 126752 * 1024


def test_memory_of_an_ended_process_is_not_there() -> None:
    with pytest.raises(KeyError):
        parse_memory("Name:\tpython3\nState:\tZ (zombie)\n", "VmRSS")
