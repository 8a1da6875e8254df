"""Admission looks only at what it is told of: it must know what a look at everything would find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from makers_operator import Operator, live
from makers_world import World, make_world_run
from stayer_operator.adapters.memory_cluster import POD
from stayer_operator.core.observed import ObjectKey
from stayer_operator.reconcile.admissions import Admissions


def _calm(world: World) -> None:
    pass


def _a_pod_is_killed(world: World) -> None:
    def kill(world: World) -> None:
        world.nodes.end_pod(world.running("a")[0], 137, "Error")

    world.when(lambda world: len(world.running("a")) > 1, kill)


def _a_pod_vanishes(world: World) -> None:
    def vanish(world: World) -> None:
        pod = world.running("b")[0]["metadata"]
        world.cluster.remove(POD, pod["namespace"], pod["name"])

    world.when(lambda world: len(world.running("b")) > 1, vanish)


def _no_node_for_a_while(world: World) -> None:
    world.nodes.schedulable = lambda _: world.ticks > 900  # beyond the wait for a node


def _suspended_for_a_while(world: World) -> None:
    world.when(lambda world: bool(world.running("a")), lambda world: world.edit_run(suspend=True))
    world.when(lambda world: world.ticks > 200, lambda world: world.edit_run(suspend=False))


def _cancelled(world: World) -> None:
    world.when(lambda world: bool(world.running("a")), lambda world: world.edit_run(cancel=True))


def without(sights: Mapping[ObjectKey, Any], told: Collection[ObjectKey]) -> dict[ObjectKey, Any]:
    return {key: sight for key, sight in sights.items() if key not in told}


@pytest.mark.parametrize(
    "disturb",
    [
        _calm,
        _a_pod_is_killed,
        _a_pod_vanishes,
        _no_node_for_a_while,
        _suspended_for_a_while,
        _cancelled,
    ],
)
def test_what_is_kept_is_what_a_look_at_everything_finds(
    disturb: Callable[[World], None],
) -> None:
    world = World([make_world_run(attempts=3, parallelism=2)])
    disturb(world)
    operator = Operator(world)
    looks = 0

    def compare(world: World) -> bool:
        nonlocal looks
        assert operator.loop is not None
        kept = operator.loop._admissions
        fresh = Admissions(kept.observed, kept.ledger)
        fresh.look_at_all()
        fresh.decide(world.clock.now())
        told = kept._stale  # at its next pass
        assert without(kept._sights, told) == without(fresh._sights, told)
        looks += len(fresh._sights.keys() - told)
        return world.is_over()

    asyncio.run(live(world, [operator], until=compare))

    assert looks > 5
