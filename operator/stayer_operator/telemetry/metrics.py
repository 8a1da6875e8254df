"""The operator's Prometheus metrics: counters and histograms of what this process did.

Label values come from closed vocabularies. Counters start at zero with the process, as
Prometheus expects; what must be right after a restart is a gauge (`run_gauges.py`).
"""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from stayer_evaluator.records.outcomes import FailureMode
from stayer_operator.core.features.decide import Features

DURATIONS = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800)
PASSES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class OperatorMetrics:
    """Fills the `Telemetry` port, and takes what the API client and the reports say."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Registers everything at once, so that each series exists from the start."""
        # A second series for each, which Prometheus does not need.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.trial_duration = Histogram(
            "stayer_trial_duration_seconds",
            "From a trial's start to its end",
            ["kind", "phase"],
            buckets=DURATIONS,
            registry=registry,
        )
        self.round_duration = Histogram(
            "stayer_round_duration_seconds",
            "Finished outer-loop rounds",
            buckets=DURATIONS,
            registry=registry,
        )
        self.verdicts = Counter(
            "stayer_verdicts_total",
            "Ended trials by failure mode (none: the agent ended by itself)",
            ["failure_mode"],
            registry=registry,
        )
        for mode in FailureMode:
            self.verdicts.labels(mode.value)
        self.infrastructure_retries = Counter(
            "stayer_infrastructure_retries_total",
            "Pods replaced because the infrastructure failed them",
            ["cause"],
            registry=registry,
        )
        self.rules = Counter(
            "stayer_rules_applied_total",
            "Rules of the planners that had something to do",
            ["kind", "rule"],
            registry=registry,
        )
        self.waiting = Gauge(
            "stayer_queue_depth", "Objects that wait to be reconciled", registry=registry
        )
        self.passes = Histogram(
            "stayer_reconcile_duration_seconds",
            "One pass over one object: gather, plan, apply",
            ["kind", "outcome"],
            buckets=PASSES,
            registry=registry,
        )
        self.features = Gauge(
            "stayer_feature_available",
            "What trial pods are made with (1) or without (0), and how that is known: setting, "
            "probe, or assumed where the probe could not tell",
            ["feature", "source"],
            registry=registry,
        )
        self.requests = Counter(
            "stayer_api_requests_total",
            "Requests to the Kubernetes API, watches counted once when opened",
            ["verb"],
            registry=registry,
        )
        self.store_errors = Counter(
            "stayer_store_errors_total",
            "Store requests that failed: the operator's by operation, the sidecars' as reported",
            ["operation"],
            registry=registry,
        )
        for operation in ("create", "get", "put", "sidecar"):
            self.store_errors.labels(operation)
        self.snapshots_taken = Counter(
            "stayer_snapshots_taken_total", "Durable snapshots", registry=registry
        )
        self.snapshots_adjudicated = Counter(
            "stayer_snapshots_adjudicated_total", "Snapshots with a verdict", registry=registry
        )
        self.snapshot_bytes = Counter(
            "stayer_snapshot_bytes_total", "Bytes of snapshots as stored", registry=registry
        )
        self.units_cleared = Counter(
            "stayer_units_cleared_total", "Units cleared for the first time", registry=registry
        )
        self.regressions = Counter(
            "stayer_regressions_total", "Cleared units that failed again", registry=registry
        )
        self.recoveries = Counter(
            "stayer_recoveries_total", "Regressed units that passed again", registry=registry
        )
        self.tokens = Counter(
            "stayer_tokens_total", "Model tokens of agents", ["direction"], registry=registry
        )
        for direction in ("input", "output"):
            self.tokens.labels(direction)
        # Finding a series takes longer than counting; these are counted most.
        self._passes = lru_cache(maxsize=64)(self.passes.labels)
        self._requests = lru_cache(maxsize=64)(self.requests.labels)

    def reconciled(self, kind: str, seconds: float, outcome: str) -> None:
        """One pass over one object."""
        self._passes(kind, outcome).observe(seconds)

    def rule_applied(self, kind: str, rule: str) -> None:
        """The rule that decided a pass which had something to do."""
        self.rules.labels(kind, rule).inc()

    def pod_replaced(self, role: str, fault: str, cause: str) -> None:  # noqa: ARG002 (port)
        """A pod got a successor; only the infrastructure's faults are counted."""
        if fault == "infrastructure":
            self.infrastructure_retries.labels(cause).inc()

    def trial_ended(self, kind: str, phase: str, failure_mode: str, seconds: float) -> None:
        """A trial reached a terminal phase."""
        self.trial_duration.labels(kind, phase).observe(max(0.0, seconds))
        if kind == "attempt":
            self.verdicts.labels(failure_mode or "none").inc()

    def store_failed(self, operation: str) -> None:
        """The object store refused or did not answer."""
        self.store_errors.labels(operation).inc()

    def queue_depth(self, waiting: int) -> None:
        """Keys that wait to be reconciled."""
        self.waiting.set(waiting)

    def features_known(self, features: Features) -> None:
        """What the nodes' runtime can do, once at the start."""
        volumes = features.delivery == "image-volume"
        self.features.labels("image_volumes", features.delivery_source.value).set(volumes)
        users = features.user_namespaces
        self.features.labels("user_namespaces", features.user_namespaces_source.value).set(users)

    def api_requested(self, verb: str) -> None:
        """One request to the Kubernetes API."""
        self._requests(verb).inc()
