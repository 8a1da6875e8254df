"""The operator under many trials at once: real API server, real scheduler, simulated nodes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import evidence
from bench.api import (
    MINE,
    RUN_NAMESPACE,
    TERMINAL,
    Api,
    Raw,
    deleting,
    no_pods,
    phase_of,
    run_manifest,
    until,
)
from bench.audit import TrialWrites, count_trial_writes, mean_writes
from bench.bench_writes import find_log
from bench.kwok import build_kwok, kwok_running
from bench.operator_process import Cost, OperatorProcess, find_operator, observed
from bench.report import Check, Report, Table
from bench.simulated import node, placement
from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.results import Metrics, TrialResults
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.retry import RetryingMutableStore
from stayer_operator.adapters.cluster import NODES, RUNS, TRIALS
from stayer_operator.api import names

NAME = "bench-scale"
NODE_COUNT = 20
TRIALS_WANTED = 1000
PARALLELISM = 200
RUN_SECONDS = 1500.0
WRITERS = 8
GOAL_CPU = 0.020
GOAL_RESIDENT = 120e6
RESULTS_METRICS = Metrics(
    resolved=False,
    tpr=0.0,
    tpr_ungated=0.0,
    depth=0.0,
    reg_events=0,
    recoveries=0,
    reg_rate=None,
    reg_final=None,
    rounds=1,
    sigma=(),
    completion_order=(),
    order_violations=0,
    order_diff=0,
    kendall_tau=None,
    units_cleared=0,
    units_total=len(evidence.UNITS),
    cases_passed=0,
    cases_total=len(evidence.UNITS),
)


@dataclass(slots=True)
class Trials:
    """What a watch shows of the Trials. Times are seconds since the epoch."""

    uids: dict[str, str] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    to_write: asyncio.Queue[Raw] = field(default_factory=asyncio.Queue)

    def see(self, kind: str, item: Raw, at: float) -> None:
        """One event."""
        name = item["metadata"]["name"]
        if kind == "DELETED":
            return
        if name not in self.uids:
            self.uids[name] = item["metadata"]["uid"]
            self.to_write.put_nowait(item)
        phase = self.phases[name] = phase_of(item)
        if phase == "Running":
            self.running.setdefault(name, at)
        if phase in TERMINAL:
            self.ended.setdefault(name, at)


@dataclass(slots=True)
class Writer:
    """Stands in for the adjudicators: creates each `results.json` long before a simulated sidecar
    says that it is there.
    """

    store: RetryingMutableStore
    written: dict[str, float] = field(default_factory=dict)

    async def write_all(self, trials: Trials) -> None:
        """Until cancelled."""
        while True:
            item = await trials.to_write.get()
            results = _results(item)
            await self.store.create(TrialKeys(item["spec"]["prefix"]).results, results.to_bytes())
            self.written[results.trial] = time.time()


def _results(item: Raw) -> TrialResults:
    spec, metadata = item["spec"], item["metadata"]
    return TrialResults(
        kind=TrialKind(spec["kind"]),
        namespace=metadata["namespace"],
        run=spec["runName"],
        trial=metadata["name"],
        task=spec["task"]["name"],
        task_digest=spec["task"]["digest"],
        agent=spec.get("agent"),
        model=spec.get("model"),
        loop=spec.get("loopProfile"),
        attempt=spec["attempt"],
        valid=True,
        failure_mode=FailureMode.NONE,
        metrics=RESULTS_METRICS,
        snapshots_taken=4,
        snapshots_adjudicated=4,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the run showed."""

    trials: Trials
    written: dict[str, float]
    cost: Cost
    seconds: float  # from the run's creation until it was complete
    peak: int  # trials running at once, at most
    writes: dict[str, TrialWrites] | None


async def bench_scale(
    api: Api, state: Path, wanted: int = TRIALS_WANTED, at_once: int = PARALLELISM
) -> Report:
    """`wanted` trials through the operator that is installed."""
    program = await asyncio.to_thread(build_kwok)
    store = evidence.connect()
    process = await find_operator(api)
    await evidence.put_scale_tasks(store)
    trials, writer = Trials(), Writer(store)
    with kwok_running(program, state) as log:
        async with _nodes(api, log), _writing(writer, trials):
            seen = await _measure(api, process, trials, writer, run_spec(wanted, at_once))
    return _report(seen, wanted, at_once)


async def _measure(
    api: Api, process: OperatorProcess, trials: Trials, writer: Writer, spec: Raw
) -> Seen:
    selector = f"{names.LABEL_RUN}={NAME}"
    audit = find_log()
    peak = Peak(trials)
    async with api.watching(TRIALS, RUN_NAMESPACE, selector, trials.see), deleting(api, NAME):
        async with observed(process) as cost:
            began = time.monotonic()
            await api.create(RUNS, run_manifest(NAME, spec))
            await until(lambda: _is_complete(api, peak), RUN_SECONDS, "all trials end", every=0.5)
            seconds = time.monotonic() - began
            await until(lambda: no_pods(api, selector), 120, "ended trials' pods go", every=1.0)
        requests = audit.requests() if audit else None
    return Seen(
        trials=trials,
        written=writer.written,
        cost=cost,
        seconds=seconds,
        peak=peak.value,
        writes=None if requests is None else count_trial_writes(requests, trials.uids),
    )


@dataclass(slots=True)
class Peak:
    """Trials that were seen running and not ended, at most."""

    trials: Trials
    value: int = 0

    def look(self) -> None:
        """Count now."""
        active = sum(phase not in ("Pending", *TERMINAL) for phase in self.trials.phases.values())
        self.value = max(self.value, active)


async def _is_complete(api: Api, peak: Peak) -> bool:
    peak.look()
    return phase_of(await api.get(RUNS, NAME, RUN_NAMESPACE)) in TERMINAL


def run_spec(wanted: int, at_once: int) -> Raw:
    """Cells enough for that many trials, all on simulated nodes."""
    template = placement()
    return {
        "tasks": {"source": {"s3": {"prefix": evidence.SCALE_TASKS}}},
        "matrix": {"agents": [{"name": "nop", "harness": "nop"}]},
        "attempts": -(-wanted // evidence.SCALE_TASK_COUNT),
        "parallelism": at_once,
        "podTemplates": {"agent": template, "adjudicator": template},
    }


@asynccontextmanager
async def _nodes(api: Api, log: Path) -> AsyncIterator[None]:
    """Simulated nodes, Ready, until the block ends."""
    made = [f"bench-node-{number:02d}" for number in range(NODE_COUNT)]
    try:
        for name in made:
            await api.create(NODES, node(name, {MINE: "true"}))
        await until(
            lambda: _are_ready(api), 120, f"simulated nodes are Ready; see {log}", every=1.0
        )
        yield
    finally:
        for name in made:
            await api.delete(NODES, name, None)


async def _are_ready(api: Api) -> bool:
    nodes, _ = await api.list(NODES, None, MINE)
    return len(nodes) == NODE_COUNT and all(_is_usable(item) for item in nodes)


def _is_usable(item: Raw) -> bool:
    """Ready, and the node controller has taken its taint away."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    taints = item["spec"].get("taints") or ()
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


@asynccontextmanager
async def _writing(writer: Writer, trials: Trials) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(writer.write_all(trials)) for _ in range(WRITERS)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if not isinstance(end, asyncio.CancelledError) and isinstance(end, BaseException):
                raise end


def _report(seen: Seen, wanted: int, at_once: int) -> Report:
    ended = len(seen.trials.ended)
    succeeded = sum(phase == "Succeeded" for phase in seen.trials.phases.values())
    per_trial = seen.cost.cpu.total / max(1, ended)
    steady = _steady_rate(list(seen.trials.ended.values()))
    early = min((seen.trials.ended[t] - seen.written[t] for t in seen.trials.ended), default=0.0)
    checks = [
        Check(
            quantity="trials that succeeded",
            goal=str(wanted),
            seen=str(succeeded),
            holds=succeeded == ended >= wanted,
        ),
        Check(
            quantity="operator CPU per trial",
            goal=f"<= {GOAL_CPU * 1000:.0f} ms",
            seen=f"{per_trial * 1000:.1f} ms",
            holds=per_trial <= GOAL_CPU,
        ),
        Check(
            quantity="operator resident memory, peak",
            goal=f"<= {GOAL_RESIDENT / 1e6:.0f} MB",
            seen=f"{seen.cost.resident_peak / 1e6:.0f} MB",
            holds=seen.cost.resident_peak <= GOAL_RESIDENT,
        ),
        Check(
            quantity="trials a second, whole run",
            goal="-",
            seen=f"{ended / seen.seconds:.2f}",
            holds=None,
        ),
        Check(quantity="trials a second, middle half", goal="-", seen=f"{steady:.2f}", holds=None),
        Check(
            quantity="results.json before the end was seen",
            goal="> 0 s",
            seen=f"{early:.1f} s at least",
            holds=early > 0,
        ),
    ]
    cpu = seen.cost.cpu
    notes = [
        f"CPU: {cpu.user:.1f} s user and {cpu.system:.1f} s system in {seen.seconds:.0f} s; "
        f"resident before: {seen.cost.resident_before / 1e6:.0f} MB; "
        f"at most {seen.peak} trials held pods at once",
        "no sidecar reports progress here, and containers do nothing: what is measured is the "
        "operator, the API server and the scheduler",
        f"API server, etcd, scheduler, kwok and this bench share {os.cpu_count()} cores with it",
    ]
    return Report(
        name="scale",
        title=f"{wanted} trials at parallelism {at_once} on {NODE_COUNT} simulated nodes",
        checks=checks,
        tables=[_writes_table(seen.writes)] if seen.writes else [],
        notes=notes,
        figures={
            "cpu_seconds": cpu.total,
            "cpu_seconds_per_trial": per_trial,
            "resident_bytes_peak": seen.cost.resident_peak,
            "resident_bytes_before": seen.cost.resident_before,
            "seconds": seen.seconds,
            "trials_per_second": ended / seen.seconds,
            "trials_per_second_middle": steady,
            "peak_active": seen.peak,
        },
    )


def _steady_rate(ended: list[float]) -> float:
    """Ends a second between the first and the third quartile."""
    times = sorted(ended)
    quarter = len(times) // 4
    if quarter < 1:
        return 0.0
    first, last = times[quarter], times[-quarter]
    return (len(times) - 2 * quarter) / (last - first) if last > first else 0.0


def _writes_table(writes: dict[str, TrialWrites]) -> Table:
    means = mean_writes(writes.values())
    title = "Operator writes per trial, from the audit log; Events are not in the total"
    return Table(
        title=title, columns=["", *means], rows=[["mean", *(f"{v:.2f}" for v in means.values())]]
    )
