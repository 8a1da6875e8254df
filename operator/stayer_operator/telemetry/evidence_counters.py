"""Counters of what trials did, fed by reports at once and by Trial statuses where none came.

All sources are cumulative per trial, so what counts is by how much the largest number seen grew.
What was there when this process first saw a trial was counted by a process before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import Counter

from stayer_evaluator.records.reports import ProgressReport
from stayer_operator.core.observed import ObjectKey
from stayer_operator.telemetry.metrics import OperatorMetrics

_STATUS_FIELDS = {
    "snapshots_taken": "snapshotsTaken",
    "snapshots_adjudicated": "snapshotsAdjudicated",
    "units_cleared": "unitsCleared",
    "regressions": "regressions",
    "recoveries": "recoveries",
    "tokens_input": "tokensInput",
    "tokens_output": "tokensOutput",
}


class EvidenceCounters:
    """Remembers per live trial what was counted."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._counters: dict[str, Counter] = {
            "snapshots_taken": metrics.snapshots_taken,
            "snapshots_adjudicated": metrics.snapshots_adjudicated,
            "bytes_stored": metrics.snapshot_bytes,
            "units_cleared": metrics.units_cleared,
            "regressions": metrics.regressions,
            "recoveries": metrics.recoveries,
            "tokens_input": metrics.tokens.labels("input"),
            "tokens_output": metrics.tokens.labels("output"),
        }
        self._counted: dict[ObjectKey, dict[str, int]] = {}

    def trial_found(self, key: ObjectKey, status: Mapping[str, Any]) -> None:
        """A trial that existed before this process looked: nothing of it is counted."""
        rounds = max(0, int(status.get("round") or 1) - 1)
        self._counted[key] = _numbers(status) | {"rounds": rounds}

    def trial_changed(self, key: ObjectKey, status: Mapping[str, Any]) -> None:
        """A trial that was made or whose status changed."""
        self._grow(key, _numbers(status))

    def trial_gone(self, key: ObjectKey) -> None:
        """The trial was deleted."""
        self._counted.pop(key, None)

    def reported(self, key: ObjectKey, report: ProgressReport) -> None:
        """A sidecar's report was taken."""
        numbers = {
            name: value
            for name in self._counters
            if (value := getattr(report, name, None)) is not None
        }
        # Cumulative for a sidecar's life, not for the trial's: counted by incarnation.
        errors = f"store_errors/{report.role}/{report.incarnation}"
        self._grow(key, numbers | {errors: report.store_errors})
        self._time_rounds(key, report.round_seconds)

    def _time_rounds(self, key: ObjectKey, seconds: tuple[float, ...]) -> None:
        counted = self._counted.setdefault(key, {})
        for duration in seconds[counted.get("rounds", 0) :]:
            self._metrics.round_duration.observe(max(0.0, duration))
        counted["rounds"] = max(counted.get("rounds", 0), len(seconds))

    def _grow(self, key: ObjectKey, numbers: Mapping[str, int]) -> None:
        counted = self._counted.setdefault(key, {})
        for name, value in numbers.items():
            grown = value - counted.get(name, 0)
            if grown > 0:
                counted[name] = value
                self._count(name, grown)

    def _count(self, name: str, grown: int) -> None:
        if name.startswith("store_errors/"):
            self._metrics.store_errors.labels("sidecar").inc(grown)
        else:
            self._counters[name].inc(grown)


def _numbers(status: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: int(value)
        for name, field in _STATUS_FIELDS.items()
        if (value := status.get(field)) is not None
    }
