"""What a run would take before it is applied: cells, pods, CPU, memory, hours. Pure."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from stayer_evaluator.records.run import RunTask
from stayer_operator.api.pods import PodTemplate
from stayer_operator.api.run import RunSpec
from stayer_operator.core.pods.quantities import merge_resources, parse_quantity
from stayer_operator.core.pods.settings import Resources
from stayer_operator.core.run.cells import Cell, run_cells
from stayer_operator.core.run.timeouts import resolve_timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProspect:
    """One cell of the run."""

    task: str
    agent: str
    model: str
    loop: str
    attempts: int
    agent_seconds: int
    expected_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """A run before it exists. CPU in cores, memory in bytes: requests at full parallelism."""

    cells: tuple[CellProspect, ...]
    trials: int
    inventories: int
    pods: int
    pods_at_once: int
    cpu: float
    memory: float
    expected_hours: float
    longest_hours: float

    def as_document(self) -> dict[str, Any]:
        """For `--output json`."""
        return asdict(self)


def prospect(
    spec: RunSpec, tasks: tuple[RunTask, ...], task_defaults: Resources, sidecar: Resources
) -> Prospect:
    """The prospect of a sound spec over the tasks that it selects.

    Expected hours count each trial with its task's own estimate, or the agent's time limit where
    the task has none; longest hours count the limit for all. Both ignore waiting for nodes.
    """
    cells = tuple(_cell(spec, cell) for cell in run_cells(spec, tasks))
    trials = sum(cell.attempts for cell in cells)
    at_once = min(spec.parallelism, trials)
    requests = _pair_requests(spec, task_defaults, sidecar)
    expected = ((cell.expected_seconds, cell.attempts) for cell in cells)
    longest = ((float(cell.agent_seconds), cell.attempts) for cell in cells)
    inventories = len({task.digest for task in tasks})
    return Prospect(
        cells=cells,
        trials=trials,
        inventories=inventories,
        pods=2 * trials + inventories,
        pods_at_once=2 * at_once,
        cpu=float(requests["cpu"] * at_once),
        memory=float(requests["memory"] * at_once),
        expected_hours=_makespan(expected, at_once) / 3600,
        longest_hours=_makespan(longest, at_once) / 3600,
    )


def _makespan(durations: Iterable[tuple[float, int]], places: int) -> float:
    """Seconds until all are done, `places` at once, the longest first (decision 0014). Each
    duration comes with the number of trials that take so long.
    """
    free_at = [0.0] * places
    for seconds, times in sorted(durations, reverse=True):
        for _ in range(times):
            heapq.heapreplace(free_at, free_at[0] + seconds)
    return max(free_at, default=0.0)


def _cell(spec: RunSpec, cell: Cell) -> CellProspect:
    limit = resolve_timeouts(spec.timeouts, cell.task).agent_seconds
    estimate = cell.task.estimated_duration_sec
    return CellProspect(
        task=cell.task.name,
        agent=cell.agent.name,
        model=cell.model,
        loop=cell.loop.name,
        attempts=cell.attempts,
        agent_seconds=limit,
        expected_seconds=limit if estimate is None else min(float(limit), estimate),
    )


def _pair_requests(
    spec: RunSpec, task_defaults: Resources, sidecar: Resources
) -> Mapping[str, Fraction]:
    templates = (spec.pod_templates.agent, spec.pod_templates.adjudicator)
    return {
        name: sum(
            (_request(template, task_defaults, name) + _sidecar(sidecar, name))
            for template in templates
        )
        + Fraction(0)
        for name in ("cpu", "memory")
    }


def _request(template: PodTemplate, defaults: Resources, name: str) -> Fraction:
    wanted = template.resources.model_dump(mode="json")
    return parse_quantity(merge_resources(defaults, wanted)["requests"][name])


def _sidecar(sidecar: Resources, name: str) -> Fraction:
    return parse_quantity(sidecar["requests"][name])
