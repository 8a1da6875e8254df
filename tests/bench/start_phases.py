"""When a trial's pods were seen to reach each step of their start. Pure: fed by a watch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# In the order in which a pod passes them; the pair has passed one when both pods have.
STEPS = ("posted", "scheduled", "sandbox made", "init done", "sidecar started", "task running")
PHASES = (
    ("created → pods posted", "posted"),
    ("→ scheduled", "scheduled"),
    ("→ sandbox and volumes made", "sandbox made"),
    ("→ init containers done", "init done"),
    ("→ sidecar started", "sidecar started"),
    ("→ task running", "task running"),
)
SIDECARS = ("recorder", "adjudicator")


def steps_passed(pod: Mapping[str, Any]) -> frozenset[str]:
    """The steps that a raw pod object shows as done."""
    status = pod.get("status") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    begun = {c["name"]: c for c in status.get("initContainerStatuses") or ()}
    inits = pod["spec"].get("initContainers") or ()
    first = _before_sidecar([container["name"] for container in inits])
    sidecar: Mapping[str, Any] = next((begun[name] for name in SIDECARS if name in begun), {})
    tasks = status.get("containerStatuses") or ()
    # What the kubelet reports late is implied by what comes after it.
    facts = {
        "task running": any("waiting" not in c.get("state", {"waiting": 1}) for c in tasks),
        "sidecar started": bool(sidecar.get("started")),
        "init done": "running" in (sidecar.get("state") or {})
        or (bool(first) and all(_has_ended(begun.get(name)) for name in first)),
        "sandbox made": conditions.get("PodReadyToStartContainers") == "True",
        "scheduled": conditions.get("PodScheduled") == "True" or bool(pod["spec"].get("nodeName")),
        "posted": True,
    }
    order = list(reversed(STEPS))
    reached = next(index for index, step in enumerate(order) if facts[step])
    return frozenset(order[reached:])


def _before_sidecar(names: list[str]) -> list[str]:
    """The init containers that end before the sidecar starts."""
    index = next((i for i, name in enumerate(names) if name in SIDECARS), len(names))
    return names[:index]


def _has_ended(container: Mapping[str, Any] | None) -> bool:
    return container is not None and "terminated" in (container.get("state") or {})


@dataclass(slots=True)
class Start:
    """One trial's start. Times are the watcher's, seconds since the epoch."""

    trial: str
    created: float
    seen: dict[str, dict[str, float]] = field(default_factory=dict)  # pod → step → time
    updates: int = 0  # events of its pods until both ran

    def see(self, name: str, pod: Mapping[str, Any], at: float) -> None:
        """One sight of one of its pods."""
        if not self.is_complete:
            self.updates += 1
        steps = self.seen.setdefault(name, {})
        for step in steps_passed(pod):
            steps.setdefault(step, at)

    @property
    def is_complete(self) -> bool:
        """Both task containers were seen running."""
        return len(self.seen) == 2 and all("task running" in steps for steps in self.seen.values())

    def reached(self, step: str) -> float:
        """When the later pod had passed the step. Raises KeyError before that."""
        return max(steps[step] for steps in self.seen.values())

    @property
    def seconds(self) -> float:
        """From the trial's creation until both task containers run."""
        return self.reached("task running") - self.created

    def phases(self) -> dict[str, float]:
        """Seconds in each phase; they add up to `seconds`."""
        before, found = self.created, {}
        for phase, step in PHASES:
            now = self.reached(step)
            found[phase], before = now - before, now
        return found


def phase_columns(starts: Iterable[Start]) -> dict[str, list[float]]:
    """The seconds of all starts, by phase."""
    columns: dict[str, list[float]] = {phase: [] for phase, _ in PHASES}
    for start in starts:
        for phase, seconds in start.phases().items():
            columns[phase].append(seconds)
    return columns
