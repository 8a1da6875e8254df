"""Time that stands still until it is moved, and telemetry that only remembers."""

from __future__ import annotations

from collections import Counter


class MemoryClock:
    """The `Clock` port by hand."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        """The time it was moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move it."""
        self._now += seconds


class MemoryTelemetry:
    """The `Telemetry` port as tallies."""

    def __init__(self) -> None:
        self.passes: Counter[tuple[str, str]] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self.replaced: Counter[tuple[str, str, str]] = Counter()
        self.ended: Counter[tuple[str, str, str]] = Counter()
        self.store_failures: Counter[str] = Counter()
        self.waiting = 0

    def reconciled(self, kind: str, seconds: float, outcome: str) -> None:  # noqa: ARG002 (port)
        """Count."""
        self.passes[kind, outcome] += 1

    def rule_applied(self, kind: str, rule: str) -> None:
        """Count."""
        self.rules[kind, rule] += 1

    def pod_replaced(self, role: str, fault: str, cause: str) -> None:
        """Count."""
        self.replaced[role, fault, cause] += 1

    def trial_ended(
        self,
        kind: str,
        phase: str,
        failure_mode: str,
        seconds: float,  # noqa: ARG002 (port)
    ) -> None:
        """Count."""
        self.ended[kind, phase, failure_mode] += 1

    def store_failed(self, operation: str) -> None:
        """Count."""
        self.store_failures[operation] += 1

    def queue_depth(self, waiting: int) -> None:
        """Remember the last."""
        self.waiting = waiting
