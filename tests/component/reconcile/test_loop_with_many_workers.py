"""The loop as it runs in the operator: many keys under way at once, until it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from makers_operator import Operator
from makers_world import World, make_world_run
from stayer_operator.adapters.memory_faults import WrappedCluster
from stayer_operator.core.plan import Manifest
from stayer_operator.ports import Cluster, Raw

T = TypeVar("T")


class YieldingCluster(WrappedCluster):
    """Lets others go on before and after every write; counts how many are under way."""

    under_way = 0
    most = 0

    async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        try:
            return await send()
        finally:
            await asyncio.sleep(0)
            self.under_way -= 1


def test_many_trials_are_worked_on_at_once_and_all_end() -> None:
    world = World([make_world_run(attempts=5, parallelism=10)])
    cluster = YieldingCluster(world.cluster)
    operator = Operator(world, cluster=cluster)
    assert operator.loop is not None

    async def run() -> None:
        loop = operator.loop
        working = asyncio.create_task(loop.run())
        for _ in range(300):
            await world.tick()
            loop.add_all()  # the clock was moved by hand: timers are due
            for _ in range(50):
                await asyncio.sleep(0)
            if world.is_over():
                break
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(run())

    assert world.is_over()
    assert world.run_status()["phase"] == "Succeeded"
    assert set(world.creations().values()) == {1}
    assert max(world.most_live.values()) == 1
    assert cluster.most > 1


class SlowPosts(WrappedCluster):
    """Answers take their time, so that trials appear one by one while pods of others are being
    created; notes for how many trials at once pods were asked or there.
    """

    def __init__(self, inner: Cluster, world: World) -> None:
        super().__init__(inner)
        self.world = world
        self.asked: set[str] = set()
        self.most = 0

    async def create_trial(self, manifest: Manifest) -> Raw:
        for _ in range(25):
            await asyncio.sleep(0)
        return await super().create_trial(manifest)

    async def create_pod(self, manifest: Manifest) -> Raw:
        self.asked.add(manifest["metadata"]["labels"]["stayer.dev/trial"])
        held = {pod["metadata"]["labels"]["stayer.dev/trial"] for pod in self.world.live_pods()}
        ended = {
            trial["metadata"]["name"]
            for trial in self.world.trials()
            if trial.get("status", {}).get("phase") in ("Succeeded", "Failed")
        }
        self.most = max(self.most, len((self.asked | held) - ended))
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().create_pod(manifest)


def test_a_place_is_not_given_twice_while_pods_are_being_created() -> None:
    world = World([make_world_run(attempts=4, parallelism=1)])
    cluster = SlowPosts(world.cluster, world)
    operator = Operator(world, cluster=cluster)
    assert operator.loop is not None

    async def run() -> None:
        loop = operator.loop
        working = asyncio.create_task(loop.run())
        for _ in range(1500):
            await world.tick()
            loop.add_all()
            for _ in range(10):  # fewer than a POST takes: admission looks again meanwhile
                await asyncio.sleep(0)
            if world.is_over():
                break
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(run())

    assert world.is_over()
    assert cluster.most == 1


def test_unexpected_error_stops_nothing() -> None:
    world = World()
    broken = {"left": 3}

    class BrokenCluster(WrappedCluster):
        async def _write(self, send: Callable[[], Awaitable[T]]) -> T:
            if broken["left"]:
                broken["left"] -= 1
                raise RuntimeError("a bug")
            return await send()

    operator = Operator(world, cluster=BrokenCluster(world.cluster))

    async def run() -> None:
        for _ in range(300):
            await operator.work()
            await world.tick()

    asyncio.run(run())

    assert world.run_status()["phase"] == "Succeeded"
    assert sum(n for (_, how), n in operator.telemetry.passes.items() if how == "error") == 3
