"""The operator is killed at every single write to cluster and store, before and after it was done,
and started again. Whatever n, everything ends as on the calm day.
"""

import asyncio

import pytest

from makers_operator import Operator, live
from makers_world import World
from stayer_operator.adapters.memory_faults import CrashingCluster, CrashingEvidence, Fuse

ALL_WRITES = 64  # more than the scenarios below have; a fuse that never blows proves the end


def crashing(world: World, fuse: Fuse) -> Operator:
    return Operator(
        world,
        cluster=CrashingCluster(world.cluster, fuse),
        evidence=CrashingEvidence(world.store, fuse),
    )


def lose_an_agent(world: World) -> None:
    """An agent pod vanishes while it works."""
    world.when(
        lambda world: world.oracle_pod("a") is not None,
        lambda world: world.cluster.remove("Pod", "lab", world.oracle_pod("a")["metadata"]["name"]),
    )


def kill_an_agent(world: World) -> None:
    """An agent brings its own pod down."""
    world.when(
        lambda world: world.oracle_pod("a") is not None,
        lambda world: world.nodes.end_pod(world.oracle_pod("a"), 137, "OOMKilled"),
    )


def begin_again(world: World) -> None:
    """A lost agent is to begin again, in another Trial."""
    world.edit_run(onAgentLoss="restart")
    lose_an_agent(world)


def calm(world: World) -> None:
    """Nothing goes wrong but the operator."""


async def scenario(disturb: object, fuse: Fuse) -> World:
    world = World()
    disturb(world)  # type: ignore[operator]
    await live(world, [crashing(world, fuse)], lambda: Operator(world))
    return world


@pytest.mark.parametrize(
    "disturb", [calm, lose_an_agent, kill_an_agent, begin_again], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "after it is done"])
def test_killed_at_any_write_it_comes_to_the_same_end(disturb: object, after: bool) -> None:
    undisturbed = asyncio.run(scenario(disturb, Fuse()))
    killed = 0

    for n in range(1, ALL_WRITES):
        fuse = Fuse(n, after=after)
        world = asyncio.run(scenario(disturb, fuse))
        killed += fuse.is_blown

        assert set(world.creations().values()) == {1}, f"a pod name was used twice, n = {n}"
        assert max(world.most_live.values()) == 1, f"two live pods of one role, n = {n}"
        assert world.outcomes() == undisturbed.outcomes(), f"n = {n}"
        if not fuse.is_blown:
            break

    assert killed >= 25
    assert not fuse.is_blown, "raise ALL_WRITES"
