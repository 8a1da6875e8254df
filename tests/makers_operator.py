"""Processes of the operator over the small world, and how both go on together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from makers_trial import make_pod_settings
from makers_world import World
from stayer_evaluator.storage.store import MutableStore
from stayer_operator.adapters.memory_faults import ProcessKilled
from stayer_operator.adapters.memory_observed import MemoryObserved
from stayer_operator.adapters.memory_time import MemoryTelemetry
from stayer_operator.core.observed import ObjectKey
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.ports import Cluster
from stayer_operator.reconcile.loop import LoopPace, ReconcileLoop

# Every change has its own pass, at once: more can go wrong.
HASTE = LoopPace(beat=0, ended=0)


@dataclass
class Operator:
    """One process of the operator over the world: its own memory, dead when it is killed."""

    world: World
    cluster: Cluster | None = None
    evidence: MutableStore | None = None
    settings: TrialSettings = field(default_factory=TrialSettings)
    pace: LoopPace = HASTE

    def __post_init__(self) -> None:
        world = self.world
        self.telemetry = MemoryTelemetry()
        self.is_alive = True
        self.loop: ReconcileLoop | None = None
        self.observed = MemoryObserved(
            world.cluster,
            on_run=lambda key: self._tell("run_changed", key),
            on_trial=lambda key: self._tell("trial_changed", key),
            on_pods=lambda key: self._tell("pods_changed", key),
        )
        self.loop = ReconcileLoop(
            cluster=self.cluster or world.cluster,
            evidence=self.evidence or world.store,
            observed=self.observed,
            clock=world.clock,
            telemetry=self.telemetry,
            pod_settings=make_pod_settings(),
            run_settings=RunSettings(),
            trial_settings=self.settings,
            pace=self.pace,
        )
        self.loop.add_all()

    def _tell(self, what: str, key: ObjectKey) -> None:
        if self.loop is not None and self.is_alive:
            getattr(self.loop, what)(key)

    async def work(self) -> None:
        """Everything that may be done now."""
        assert self.loop is not None
        await self.loop.work_off()

    def kill(self) -> None:
        self.is_alive = False
        self.observed.is_alive = False


async def live(
    world: World,
    operators: list[Operator],
    successor: Callable[[], Operator] | None = None,
    *,
    until: Callable[[World], bool] = World.is_over,
    ticks: int = 2000,
) -> None:
    """Let the world and its operators go on until it is over. A killed operator is succeeded."""
    for _ in range(ticks):
        for operator in list(operators):
            try:
                await operator.work()
            except ProcessKilled:
                operator.kill()
                operators.remove(operator)
                if successor is not None:
                    operators.append(successor())
                    await operators[-1].work()
        if until(world):
            return
        await world.tick()
    raise AssertionError(f"still going on: {world.phases()} {world.run_status()}")
