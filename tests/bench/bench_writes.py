"""What the operator asks of the API server, by the server's own audit log."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.api import (
    OPERATOR_USER,
    RUN_NAMESPACE,
    TERMINAL,
    Api,
    BenchError,
    Raw,
    no_pods,
    phase_of,
    run_manifest,
    running,
    until,
)
from bench.audit import AuditLog, Idle, Request, TrialWrites, count_idle, count_trial_writes
from bench.audit import mean_writes as mean
from bench.evidence import REAL_TASKS
from bench.report import Check, Report, Table
from stayer_operator.adapters.cluster import RUNS, TRIALS
from stayer_operator.api import names

NAME = "bench-writes"
TRIALS_WANTED = 12
UNDISTURBED_WANTED = 10
AT_ONCE = 2
RUN_SECONDS = 1800.0
IDLE_SECONDS = 60.0
SETTLE_SECONDS = 15.0  # past what a run's last status waits for
IDLE_TRIES = 5
GOAL_WRITES = 7
GOAL_PODS = 2


@dataclass(slots=True)
class TrialSight:
    """A Trial as a watch showed it, version by version."""

    uid: str = ""
    kind: str = ""
    status: Raw = field(default_factory=dict)
    versions: int = 0
    progress: int = 0  # writes that changed no condition: numbers for people

    def see(self, item: Raw) -> None:
        """The next version."""
        status = item.get("status") or {}
        if self.versions and _judged(status) == _judged(self.status):
            self.progress += 1
        self.uid, self.kind = item["metadata"]["uid"], item["spec"]["kind"]
        self.status = status
        self.versions += 1

    @property
    def is_undisturbed(self) -> bool:
        """It succeeded, and no pod was replaced or given back."""
        spare = self.status.get("infraRestarts") or self.status.get("releasedAttempts")
        return self.status.get("phase") == "Succeeded" and not spare


def _judged(status: Raw) -> list[tuple[str, str]]:
    return sorted((c["type"], c["status"]) for c in status.get("conditions") or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the run showed."""

    undisturbed: dict[str, TrialWrites]
    progress: dict[str, int]
    disturbed: int
    run_writes: list[Request]
    run_seconds: float
    idle: Idle


async def bench_writes(api: Api) -> Report:
    """Run small trials, count, then watch the operator doing nothing for a minute."""
    log = find_log()
    if log is None:
        raise BenchError("writes: needs STAYER_AUDIT_LOG, the API server's audit log as a file")
    return _report(await _measure(api, log))


def find_log() -> AuditLog | None:
    """The operator's requests in the audit log that the environment names."""
    path = os.environ.get("STAYER_AUDIT_LOG")
    return AuditLog(Path(path), OPERATOR_USER) if path and Path(path).exists() else None


async def _measure(api: Api, log: AuditLog) -> Seen:
    trials: dict[str, TrialSight] = {}

    def seen(kind: str, item: Raw, _at: float) -> None:
        if kind != "DELETED":
            trials.setdefault(item["metadata"]["name"], TrialSight()).see(item)

    selector = f"{names.LABEL_RUN}={NAME}"
    async with (
        api.watching(TRIALS, RUN_NAMESPACE, selector, seen),
        running(api, run_manifest(NAME, _spec())),
    ):
        seconds = await until(lambda: _has_ended(api), RUN_SECONDS, f"{NAME} ends", every=1.0)
        await until(lambda: no_pods(api, selector), 120, "ended trials' pods are gone", every=1.0)
        await asyncio.sleep(SETTLE_SECONDS)
        requests = log.requests()
        idle = await _idle_minute(api, log)
    return _count(requests, trials, seconds, idle)


def _spec() -> dict[str, Any]:
    return {
        "tasks": {"source": {"s3": {"prefix": REAL_TASKS}}},
        "matrix": {"agents": [{"name": "oracle", "harness": "oracle"}]},
        "attempts": TRIALS_WANTED,
        "parallelism": AT_ONCE,
        "snapshots": {"betweenStepsOnly": True, "everySnapshot": True},
    }


async def _has_ended(api: Api) -> bool:
    return phase_of(await api.get(RUNS, NAME, RUN_NAMESPACE)) in TERMINAL


def _count(
    requests: tuple[Request, ...], trials: dict[str, TrialSight], seconds: float, idle: Idle
) -> Seen:
    attempts = {name: trial for name, trial in trials.items() if trial.kind == "attempt"}
    calm = {name: trial.uid for name, trial in attempts.items() if trial.is_undisturbed}
    return Seen(
        undisturbed=count_trial_writes(requests, calm),
        progress={name: attempts[name].progress for name in calm},
        disturbed=len(attempts) - len(calm),
        run_writes=[r for r in requests if r.is_write and _is_about_run(r)],
        run_seconds=seconds,
        idle=idle,
    )


def _is_about_run(request: Request) -> bool:
    if request.resource == "benchmarkruns":
        return request.name == NAME
    return request.resource == "networkpolicies" and request.name.startswith(NAME)


async def _idle_minute(api: Api, log: AuditLog) -> Idle:
    """A minute in which nobody else gave the operator work either."""
    for _ in range(IDLE_TRIES):
        before = await _versions(api)
        log.mark()
        await asyncio.sleep(IDLE_SECONDS)
        requests = log.requests()
        if before is not None and await _versions(api) == before:
            return count_idle(requests)
        await asyncio.sleep(SETTLE_SECONDS)
    raise BenchError("writes: others kept the operator busy; run this bench when nothing else runs")


async def _versions(api: Api) -> frozenset[str] | None:
    """Versions of all runs and Trials; None while a Trial is under way."""
    runs, _ = await api.list(RUNS, None)
    trials, _ = await api.list(TRIALS, None)
    if any(phase_of(trial) not in TERMINAL for trial in trials):
        return None
    return frozenset(item["metadata"]["resourceVersion"] for item in (*runs, *trials))


def _report(seen: Seen) -> Report:
    rows = list(seen.undisturbed.values())
    if not rows:
        raise BenchError("writes: no trial went through undisturbed")
    writes = [row.total - seen.progress[name] for name, row in seen.undisturbed.items()]
    pods = [row.pod_posts for row in rows]
    idle = seen.idle
    checks = [
        Check(
            quantity="undisturbed trials",
            goal=f">= {UNDISTURBED_WANTED}",
            seen=f"{len(rows)} of {len(rows) + seen.disturbed}",
            holds=len(rows) >= UNDISTURBED_WANTED,
        ),
        Check(
            quantity="operator writes per undisturbed trial",
            goal=f"<= {GOAL_WRITES}",
            seen=spread(writes),
            holds=max(writes) <= GOAL_WRITES,
        ),
        Check(
            quantity="pod POSTs per undisturbed trial",
            goal=str(GOAL_PODS),
            seen=spread(pods),
            holds=set(pods) == {GOAL_PODS},
        ),
        Check(
            quantity="other writes in an idle minute",
            goal="0",
            seen=str(idle.other_writes),
            holds=idle.other_writes == 0,
        ),
        Check(
            quantity="reads in an idle minute (GET, LIST)",
            goal="0",
            seen=str(idle.other_reads),
            holds=idle.other_reads == 0,
        ),
        Check(
            quantity="Lease renewals in an idle minute",
            goal="-",
            seen=str(idle.lease_writes),
            holds=None,
        ),
        Check(
            quantity="watches begun anew in that minute",
            goal="-",
            seen=str(idle.watches),
            holds=None,
        ),
    ]
    others = [f"idle minute: {count} x {kind}" for kind, count in idle.others.items()]
    return Report(
        name="writes",
        title=f"{TRIALS_WANTED} trials of task_durations by the oracle, {AT_ONCE} at once; "
        "counted in the API server's audit log",
        checks=checks,
        tables=[_per_trial(seen), _per_run(seen)],
        notes=others,
        figures={
            "writes_per_trial": writes,
            "trials": {
                name: asdict(row) | {"progress": seen.progress[name]}
                for name, row in seen.undisturbed.items()
            },
            "idle": asdict(idle),
            "run_writes": len(seen.run_writes),
            "run_seconds": seen.run_seconds,
        },
    )


def spread(values: list[int]) -> str:
    """One number where all are equal, else the mean and the ends."""
    if min(values) == max(values):
        return str(values[0])
    return f"{sum(values) / len(values):.2f} ({min(values)}-{max(values)})"


def _per_trial(seen: Seen) -> Table:
    means = mean(seen.undisturbed.values())
    progress = sum(seen.progress.values()) / len(seen.progress)
    columns = {
        "Trial": means["trial_posts"],
        "pods": means["pod_posts"],
        "status": means["status"] - progress,
        "cleanup": means["cleanup"],
        "other": means["other"],
        "sum": means["total"] - progress,
        "progress": progress,
        "Events": means["events"],
        "refused": means["refused"],
    }
    row = ["mean of a trial", *(f"{value:.2f}" for value in columns.values())]
    title = "Operator writes per undisturbed trial; progress and Events are not in the sum"
    return Table(title=title, columns=["", *columns], rows=[row])


def _per_run(seen: Seen) -> Table:
    kinds = sorted({request.kind for request in seen.run_writes})
    rows = [[kind, str(sum(request.kind == kind for request in seen.run_writes))] for kind in kinds]
    title = f"Operator writes about the run itself, {seen.run_seconds:.0f} s long"
    return Table(title=title, columns=["", "writes"], rows=rows)
