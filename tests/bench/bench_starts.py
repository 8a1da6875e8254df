"""From the creation of a Trial until both its task containers run, as a watch shows it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from bench.api import (
    RUN_NAMESPACE,
    TERMINAL,
    Api,
    BenchError,
    Raw,
    connect,
    phase_of,
    run_manifest,
    running,
    until,
)
from bench.evidence import REAL_TASKS
from bench.numbers import percentile
from bench.report import Check, Report, Table
from bench.start_phases import Start, phase_columns
from stayer_operator.adapters.cluster import PODS, RUNS, TRIALS
from stayer_operator.api import names

NAME = "bench-starts"
WARM_UP = 2  # not counted: images, the task's inventory and policies are there afterwards
START_SECONDS = 300.0
END_SECONDS = 300.0
GOAL_P50 = 6.0
GOAL_P99 = 10.0
GOAL_STARTS = 50
PERCENTS = (50, 90, 99, 100)


class Starts:
    """All starts of the run, filled by two watches."""

    def __init__(self) -> None:
        self.by_trial: dict[str, Start] = {}
        self.phases: dict[str, str] = {}
        self.pods: set[str] = set()
        self._early: list[tuple[str, Raw, float]] = []

    def trial_seen(self, kind: str, item: Raw, at: float) -> None:
        """A Trial was made or changed; inventories are not counted."""
        name = item["metadata"]["name"]
        self.phases[name] = "Deleted" if kind == "DELETED" else phase_of(item)
        if item["spec"]["kind"] == "attempt" and name not in self.by_trial:
            self.by_trial[name] = Start(trial=name, created=at)
            for pod, raw, early in [e for e in self._early if self._owner(e[1]) == name]:
                self.by_trial[name].see(pod, raw, early)

    def pod_seen(self, kind: str, item: Raw, at: float) -> None:
        """A pod was made or changed."""
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.pods.discard(name)
            return
        self.pods.add(name)
        start = self.by_trial.get(self._owner(item))
        if start is None:  # the two watches may overtake one another
            self._early.append((name, item, at))
        else:
            start.see(name, item, at)

    @staticmethod
    def _owner(pod: Raw) -> str:
        return str(pod["metadata"]["labels"].get(names.LABEL_TRIAL, ""))

    def attempts(self) -> int:
        return len(self.by_trial)

    def all_running(self) -> bool:
        """Every attempt has started."""
        return all(start.is_complete for start in self.by_trial.values())

    def all_over(self) -> bool:
        """Every Trial has ended and its pods are gone."""
        return not self.pods and all(phase in TERMINAL for phase in self.phases.values())


async def bench_starts(api: Api, wanted: int = GOAL_STARTS, at_once: int = 1) -> Report:
    """Start trials, `at_once` at a time on an otherwise idle node; each begins when the one
    before it has gone, so that creation is not waiting for a place.
    """
    starts = Starts()
    selector = f"{names.LABEL_RUN}={NAME}"
    async with (
        connect(prompt=True) as watcher,
        watcher.watching(TRIALS, RUN_NAMESPACE, selector, starts.trial_seen),
        watcher.watching(PODS, RUN_NAMESPACE, selector, starts.pod_seen),
        running(api, run_manifest(NAME, _spec(at_once))),
    ):
        total = at_once
        while True:
            await _one_round(starts, total)
            if total >= WARM_UP + wanted:
                break
            total += at_once
            patch = {"spec": {"attempts": total}}
            await api.merge(RUNS, NAME, RUN_NAMESPACE, patch)
    counted = sorted(starts.by_trial.values(), key=lambda start: start.created)[WARM_UP:]
    return _report(counted, at_once)


async def _one_round(starts: Starts, total: int) -> None:
    await until(
        lambda: starts.attempts() >= total and starts.all_running(),
        START_SECONDS,
        "both containers of a new trial run",
        every=0.05,
    )
    await until(starts.all_over, END_SECONDS, "the trial has ended, its pods are gone", every=0.05)
    await asyncio.sleep(0.5)  # what ending left to do on the node


def _spec(at_once: int) -> dict[str, Any]:
    return {
        "tasks": {"source": {"s3": {"prefix": REAL_TASKS}}},
        "matrix": {"agents": [{"name": "nop", "harness": "nop"}]},
        "attempts": at_once,
        "parallelism": 10,
        "snapshots": {"betweenStepsOnly": True},
    }


def _report(starts: list[Start], at_once: int) -> Report:
    if not starts:
        raise BenchError("starts: none was seen")
    totals = [start.seconds for start in starts]
    p50, p99 = percentile(totals, 50), percentile(totals, 99)
    load = os.getloadavg()[1]
    columns = phase_columns(starts)
    rows = [[phase, *_cells(seconds)] for phase, seconds in columns.items()]
    rows.append(["created → both running", *_cells(totals)])
    updates = sum(start.updates for start in starts) / len(starts)
    return Report(
        name="starts",
        title=f"{len(starts)} starts, {at_once} at once, images present",
        checks=[
            Check(
                quantity="starts",
                goal=f">= {GOAL_STARTS}",
                seen=str(len(starts)),
                holds=len(starts) >= GOAL_STARTS,
            ),
            _goal("created → both running, p50", GOAL_P50, p50),
            _goal("created → both running, p99", GOAL_P99, p99),
        ],
        tables=[
            Table(
                title="Seconds by phase of start, of the pair: a phase ends with the later pod",
                columns=["", *(f"p{p}" if p < 100 else "max" for p in PERCENTS)],
                rows=rows,
            )
        ],
        notes=[
            "the kubelet looks at its containers once a second, so the last three phases are seen "
            "up to 1 s late each, the sum not more than that later",
            f"{updates:.1f} events of its two pods per start; load average of the last 5 minutes "
            f"{load:.1f} on {os.cpu_count()} cores",
        ],
        figures={"seconds": totals, "phases": columns, "pod_events": updates, "load": load},
    )


def _goal(quantity: str, goal: float, seconds: float) -> Check:
    return Check(
        quantity=quantity, goal=f"<= {goal:.0f} s", seen=f"{seconds:.2f} s", holds=seconds <= goal
    )


def _cells(seconds: list[float]) -> list[str]:
    return [f"{percentile(seconds, percent):.2f}" for percent in PERCENTS]
