"""A run from its creation to its end over memory adapters, when nothing goes wrong."""

import asyncio
from collections import Counter

from makers_operator import Operator, live
from makers_world import World
from stayer_operator.api import names
from stayer_operator.reconcile.loop import LoopPace


def test_run_ends_with_every_trial_scored() -> None:
    world = World()

    asyncio.run(live(world, [Operator(world)]))

    assert world.run_status()["phase"] == "Succeeded"
    assert set(world.phases().values()) == {"Succeeded"}
    assert len(world.phases()) == 3  # one inventory, two attempts
    assert Counter(world.creations().values()) == {1: 5}


def test_undisturbed_trial_costs_seven_writes() -> None:
    world = World()

    asyncio.run(live(world, [Operator(world)]))

    uids = {trial["metadata"]["name"]: trial["metadata"]["uid"] for trial in world.trials()}
    for name, uid in uids.items():
        costs = Counter(
            (line.verb, line.kind)
            for line in world.writes(names.TRIAL_KIND, "Pod")
            if line.name.startswith(name) or line.name == uid
        )
        attempt = "-inv-" not in name
        assert costs == {
            ("create", names.TRIAL_KIND): 1,
            ("create", "Pod"): 2 if attempt else 1,
            ("patch", names.TRIAL_KIND): 3 if attempt else 2,  # Running, (Draining,) the end
            ("deletecollection", "Pod"): 1,
        }


def test_nothing_is_written_once_it_is_over() -> None:
    world = World()
    operator = Operator(world)

    async def idle() -> int:
        await live(world, [operator])
        before = len(world.cluster.audit)
        for _ in range(600):
            await operator.work()
            await world.tick()
        return len(world.cluster.audit) - before

    assert asyncio.run(idle()) == 0


def test_changes_within_a_beat_are_looked_at_together() -> None:
    passes, outcomes = [], []

    for pace in (LoopPace(beat=0, ended=0), LoopPace(beat=1.5)):
        world = World()
        operator = Operator(world, pace=pace)
        asyncio.run(live(world, [operator]))
        passes.append(operator.telemetry.passes["trial", "ok"])
        outcomes.append(world.outcomes())

    assert outcomes[0] == outcomes[1]
    assert passes[1] < passes[0]
