"""Conflicts, lost answers, slow watches, a second operator, and what happens to pods and nodes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from makers_operator import Operator, live
from makers_sidecars import NAMESPACE
from makers_world import World, make_world_run
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import TrialResults
from stayer_operator.adapters.memory_cluster import POD
from stayer_operator.adapters.memory_faults import FlakyCluster, RejectingCluster
from stayer_operator.api import names


def calm_outcomes() -> dict[str, Any]:
    world = World()
    asyncio.run(live(world, [Operator(world)]))
    return world.outcomes()


def once(
    role: str, do: Callable[[World, dict[str, Any]], None], ticks: int = 2
) -> Callable[[World], None]:
    """Do something to the oracle's pod, once."""

    def disturb(world: World) -> None:
        world.when(
            lambda world: world.oracle_pod(role, ticks) is not None,
            lambda world: do(world, world.oracle_pod(role, ticks)),
        )

    return disturb


def delete(world: World, pod: dict[str, Any]) -> None:
    """kubectl delete pod."""
    world.cluster.delete_pod_as_a_person(NAMESPACE, pod["metadata"]["name"])


def vanish(world: World, pod: dict[str, Any]) -> None:
    world.cluster.remove(POD, NAMESPACE, pod["metadata"]["name"])


def drain(world: World, pod: dict[str, Any]) -> None:
    """The Eviction API."""
    disruption = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": world.stamp(),
    }
    world.cluster.update(
        POD,
        NAMESPACE,
        pod["metadata"]["name"],
        lambda pod: pod["status"]["conditions"].append(disruption),
    )
    delete(world, pod)


@pytest.mark.parametrize("role", ["a", "b"])
@pytest.mark.parametrize("do", [delete, vanish, drain], ids=lambda do: do.__name__)
def test_lost_pod_is_replaced_and_nothing_else_changes(
    role: str, do: Callable[[World, dict[str, Any]], None]
) -> None:
    world = World()
    once(role, do)(world)

    asyncio.run(live(world, [Operator(world)]))

    assert world.outcomes() == calm_outcomes()
    assert len(world.creations()) == 6
    assert set(world.creations().values()) == {1}
    assert max(world.most_live.values()) == 1
    assert sum(trial["status"].get("infraRestarts", 0) for trial in world.trials()) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_every_status_write_conflicts_some_times(times: int) -> None:
    world = World()

    asyncio.run(live(world, [Operator(world, cluster=RejectingCluster(world.cluster, times))]))

    assert world.outcomes() == calm_outcomes()
    assert set(world.creations().values()) == {1}


@pytest.mark.parametrize("lost", [True, False], ids=["done unanswered", "not done"])
@pytest.mark.parametrize("period", [2, 3, 5])
def test_writes_go_unanswered(period: int, lost: bool) -> None:
    world = World()

    cluster = FlakyCluster(world.cluster, period, lost=lost)
    asyncio.run(live(world, [Operator(world, cluster=cluster)]))

    assert world.outcomes() == calm_outcomes()
    assert set(world.creations().values()) == {1}
    assert max(world.most_live.values()) == 1


@pytest.mark.parametrize("behind", [1, 3, 10], ids=lambda ticks: f"{ticks} ticks behind")
def test_watch_is_slow(behind: int) -> None:
    world = World()
    operator = Operator(world)
    operator.observed.hold()

    async def slow() -> None:
        for _ in range(400):
            for _ in range(behind):
                await operator.work()
                await world.tick()
            operator.observed.release()
            operator.observed.hold()
            if world.is_over():
                return

    asyncio.run(slow())

    assert world.is_over()
    assert world.outcomes() == calm_outcomes()
    assert set(world.creations().values()) == {1}
    assert max(world.most_live.values()) == 1


@pytest.mark.parametrize("late", [0, 1, 2, 3, 4, 5, 6, 8], ids=lambda ticks: f"from tick {ticks}")
def test_two_operators_do_no_harm(late: int) -> None:
    world = World()
    operators = [Operator(world)]

    async def both() -> None:
        for _ in range(late):
            await operators[0].work()
            await world.tick()
        operators.append(Operator(world))
        await live(world, operators)

    asyncio.run(both())

    assert world.outcomes() == calm_outcomes()
    assert set(world.creations().values()) == {1}
    assert max(world.most_live.values()) == 1


def test_node_falls_silent_with_both_pods_of_a_trial() -> None:
    world = World()
    once("a", lambda world, _: world.nodes.silence("node-1"))(world)

    asyncio.run(live(world, [Operator(world)], until=over_but_for_silent_nodes, ticks=4000))

    assert world.outcomes() == calm_outcomes()
    assert set(world.creations().values()) == {1}


def over_but_for_silent_nodes(world: World) -> bool:
    """Nobody removes a pod object whose node may still run it."""
    left = [pod for pod in world.pods() if pod["spec"].get("nodeName") not in world.nodes.silent]
    return not left and world.run_status().get("phase") == "Succeeded"


def test_old_recorder_that_comes_back_is_fenced_and_changes_nothing() -> None:
    """The node was only cut off: its recorder goes on writing after its successor has started."""
    world = World()
    once("a", lambda world, _: world.nodes.silence("node-1", dead=False))(world)

    asyncio.run(live(world, [Operator(world)], until=over_but_for_silent_nodes, ticks=4000))

    assert world.outcomes() == calm_outcomes()


def test_trial_is_given_up_when_too_many_pods_were_lost() -> None:
    world = World([make_world_run(infraRetries=2)])
    for _ in range(3):
        once("a", vanish, ticks=1)(world)

    asyncio.run(live(world, [Operator(world)]))

    lost = next(t for t in world.trials() if t["spec"].get("agent") == "oracle")
    assert lost["status"]["phase"] == "Failed"
    assert lost["status"]["failureMode"] == "infra_error"
    assert "infraRetries: 2" in lost["status"]["message"]
    results = TrialResults.from_bytes(world.store.objects[lost["status"]["results"]])
    assert not results.valid
    assert results.failure_mode is FailureMode.INFRA_ERROR


@pytest.mark.parametrize(
    ("reason", "message", "mode"),
    [
        ("OOMKilled", "", "agent_oom"),
        ("Error", "", "agent_killed"),
    ],
)
def test_agent_that_kills_itself_is_scored_by_what_it_left(
    reason: str, message: str, mode: str
) -> None:
    world = World()
    once("a", lambda world, pod: world.nodes.end_pod(pod, 137, reason, message))(world)

    asyncio.run(live(world, [Operator(world)]))

    killed = next(t for t in world.trials() if t["spec"].get("agent") == "oracle")
    assert killed["status"]["phase"] == "Succeeded"
    assert killed["status"]["failureMode"] == mode
    assert killed["status"].get("infraRestarts", 0) == 0
    assert set(world.creations().values()) == {1}
    assert len(world.creations()) == 5


def test_half_scheduled_pair_is_released_in_time_and_comes_back() -> None:
    world = World()
    full = {"is": True}
    world.nodes.schedulable = lambda pod: "-a-" not in pod["metadata"]["name"] or not full["is"]
    world.when(lambda world: world.ticks > 200, lambda world: full.update({"is": False}))
    longest = watch_half_pairs(world)

    asyncio.run(live(world, [Operator(world)]))

    assert world.outcomes() == calm_outcomes()
    assert max(longest.values()) <= 62
    assert all(
        trial["status"].get("releasedAttempts", 0) >= 1
        for trial in world.trials()
        if trial["spec"]["kind"] == "attempt"
    )
    assert all(trial["status"].get("infraRestarts", 0) == 0 for trial in world.trials())
    assert set(world.creations().values()) == {1}


def watch_half_pairs(world: World) -> dict[str, int]:
    """For how many ticks a pod had a node and its partner had none, by pod name."""
    ticks: dict[str, int] = {}

    def look(world: World) -> bool:
        nodeless = {
            pod["metadata"]["name"].replace("-a-", "-b-")
            for pod in world.pods("a-")
            if not pod["spec"].get("nodeName")
        }
        for pod in world.pods("b-"):
            name = pod["metadata"]["name"]
            if name in nodeless and pod["spec"].get("nodeName"):
                ticks[name] = ticks.get(name, 0) + 1
        return False

    world.when(look, lambda world: None)
    return ticks


def test_pair_that_fits_nowhere_is_released_and_blocks_its_shape_only() -> None:
    world = World()
    full = {"is": True}
    world.nodes.schedulable = lambda pod: not full["is"]
    world.when(lambda world: world.ticks > 1500, lambda world: full.update({"is": False}))

    asyncio.run(live(world, [Operator(world)], ticks=4000))

    assert world.outcomes() == calm_outcomes()
    inventory = next(t for t in world.trials() if t["spec"]["kind"] == "inventory")
    assert inventory["status"]["releasedAttempts"] >= 1
    assert inventory["status"].get("infraRestarts", 0) == 0


def test_pods_that_never_start_end_the_trial() -> None:
    world = World([make_world_run(infraRetries=1)])
    world.nodes.pod_runs = lambda pod: "-inv-" in pod["metadata"]["name"]

    asyncio.run(live(world, [Operator(world)], ticks=6000))

    attempts = [t for t in world.trials() if t["spec"]["kind"] == "attempt"]
    assert {t["status"]["phase"] for t in attempts} == {"Failed"}
    assert {t["status"]["infraRestarts"] for t in attempts} == {1}


def test_isolation_that_is_not_enforced_ends_the_trial_at_once() -> None:
    world = World()
    once("a", lambda world, pod: world.nodes.refuse(pod, "IsolationNotEnforced"))(world)

    asyncio.run(live(world, [Operator(world)]))

    refused = next(t for t in world.trials() if t["spec"].get("agent") == "oracle")
    complete = next(c for c in refused["status"]["conditions"] if c["type"] == "Complete")
    assert refused["status"]["phase"] == "Failed"
    assert complete["reason"] == "IsolationNotEnforced"
    assert len(world.creations()) == 5


@pytest.mark.parametrize("tick", range(0, 24, 2), ids=lambda tick: f"in tick {tick}")
def test_run_is_suspended_for_a_while(tick: int) -> None:
    world = World()
    world.when(lambda world: world.ticks >= tick, lambda world: world.edit_run(suspend=True))
    world.when(lambda world: world.ticks >= tick + 40, lambda world: world.edit_run(suspend=False))
    most = {"pods": 0}

    def count(world: World) -> bool:
        if tick + 20 <= world.ticks < tick + 40:
            most["pods"] = max(most["pods"], len(world.live_pods()))
        return False

    world.when(count, lambda world: None)

    asyncio.run(live(world, [Operator(world)]))

    assert most["pods"] == 0
    assert world.outcomes() == calm_outcomes()
    assert all(trial["status"].get("infraRestarts", 0) == 0 for trial in world.trials())
    assert set(world.creations().values()) <= {1}


@pytest.mark.parametrize("tick", range(0, 24, 2), ids=lambda tick: f"in tick {tick}")
def test_run_is_cancelled(tick: int) -> None:
    world = World()
    world.when(lambda world: world.ticks >= tick, lambda world: world.edit_run(cancel=True))

    asyncio.run(live(world, [Operator(world)], ticks=tick + 60))

    assert set(world.phases().values()) <= {"Cancelled", "Succeeded"}
    assert world.run_status()["phase"] in ("Cancelled", "Succeeded")


@pytest.mark.parametrize("tick", range(0, 24, 2), ids=lambda tick: f"in tick {tick}")
def test_run_is_deleted_and_nothing_is_left_within_a_minute(tick: int) -> None:
    world = World()
    world.when(
        lambda world: world.ticks >= tick,
        lambda world: world.cluster.remove(names.RUN_KIND, NAMESPACE, "demo"),
    )
    world.nodes.slow_stop = 590  # seconds that a pod takes to end unless it is hurried

    def is_gone(world: World) -> bool:
        return world.ticks > tick and not world.trials() and not world.pods()

    asyncio.run(live(world, [Operator(world)], until=is_gone, ticks=tick + 60))

    assert is_gone(world)


def test_attempt_begins_again_in_a_trial_of_its_own() -> None:
    world = World([make_world_run(onAgentLoss="restart")])
    once("a", vanish)(world)

    asyncio.run(live(world, [Operator(world)]))

    oracle = sorted(
        (t for t in world.trials() if t["spec"].get("agent") == "oracle"),
        key=lambda trial: trial["spec"]["restarts"],
    )
    assert [trial["spec"]["restarts"] for trial in oracle] == [0, 1]
    assert [trial["status"]["phase"] for trial in oracle] == ["Failed", "Succeeded"]
    assert world.run_status()["phase"] == "Succeeded"
    assert world.run_status()["trials"]["total"] == 2
    assert set(world.creations().values()) == {1}


def test_attempt_does_not_begin_again_for_ever() -> None:
    world = World([make_world_run(onAgentLoss="restart", infraRetries=2)])
    for _ in range(9):
        once("a", vanish, ticks=1)(world)

    asyncio.run(live(world, [Operator(world)]))

    oracle = [t for t in world.trials() if t["spec"].get("agent") == "oracle"]
    assert [trial["status"]["phase"] for trial in oracle] == 3 * ["Failed"]


def test_lost_agent_ends_the_attempt_where_the_run_wants_it() -> None:
    world = World([make_world_run(onAgentLoss="fail")])
    once("a", vanish)(world)

    asyncio.run(live(world, [Operator(world)]))

    (oracle,) = [t for t in world.trials() if t["spec"].get("agent") == "oracle"]
    complete = next(c for c in oracle["status"]["conditions"] if c["type"] == "Complete")
    assert oracle["status"]["phase"] == "Failed"
    assert complete["reason"] == "AgentLost"


def test_trial_that_appears_after_its_run_was_cancelled_is_cancelled_too() -> None:
    """Its POST was under way when the cancel was seen: admission lets it in never."""
    world = World()
    operator = Operator(world)

    async def appear() -> None:
        await live(world, [operator], until=lambda world: bool(world.running("a")))
        shown = next(trial for trial in world.trials() if "-inv-" not in trial["metadata"]["name"])
        metadata = shown["metadata"]
        world.edit_run(cancel=True)
        await operator.work()
        late = {name: metadata[name] for name in ("namespace", "labels", "ownerReferences")}
        await world.cluster.create_trial(
            {**shown, "metadata": {**late, "name": "late"}, "status": {}}
        )
        await live(world, [operator])

    asyncio.run(appear())

    assert world.phases()["late"] == "Cancelled"
