"""Whatever dies at whatever point, the trial's snapshots are those of a calm run (design.md §1.1).

The recorder is killed at every one of its writes, before it is done and just after; the pod is
then lost (another incarnation goes on from S3) or the sidecar alone is started again in its pod.
"""

import asyncio
from dataclasses import replace

import pytest

from makers_episode import (
    PREFIX,
    Pod,
    make_document,
    make_pod,
    make_store,
    play,
    play_until,
    read_queue,
    read_trace,
    snapshots,
    started,
    tree_of,
)
from stayer_evaluator.episode.main import Program
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.records.trial import LoopProfile, Timeouts
from stayer_evaluator.storage.memory import CrashingStore, FaultyStore, MemoryStore

SCRIPT = """
steps:
  - applyDiff: {unit: parser}
  - run: {command: [sh, -c, 'echo x >> log; mkdir -p deep/er; ln -s ../log deep/link']}
  - run: {command: [sh, -c, 'wc -l < log > lines; chmod 700 deep; rm README.md']}
rounds:
  2: [{applyDiff: {unit: engine}}]
"""
DOCUMENT = make_document(
    "scripted",
    SCRIPT,
    loop=LoopProfile(outer_loop_count=2),
    timeouts=Timeouts(agent_seconds=600),
)


def story(store: MemoryStore) -> list[object]:
    """What must be equal: trees with their marks, and how it ended."""
    entries = read_queue(store)
    end = entries[-1]
    assert isinstance(end, EndEntry)
    told: list[object] = [
        (entry.snapshot, entry.tree, entry.episode.round, entry.episode.step, entry.implemented)
        for entry in snapshots(store)
    ]
    rounds = [(r.number, r.cause, r.failure_mode, r.changed) for r in end.episode.rounds]
    return [*told, rounds, end.failure_mode, end.message, traced(store)]


def traced(store: MemoryStore) -> list[object]:
    """Events of the trace that no restart may lose or double."""
    kept = ("snapshot_taken", "implemented", "round_ended")
    found = [
        (event.type, event.snapshot, event.data.get("unit"), event.data.get("round"))
        for event in read_trace(store)
        if event.type in kept
    ]
    return sorted(found, key=str)


@pytest.fixture(scope="module")
def calm() -> tuple[list[object], int]:
    """The story of a calm run, and how many writes it takes."""
    store = make_store(DOCUMENT)
    counting = CrashingStore(store, 10**9)
    with make_pod(DOCUMENT) as pod:
        assert asyncio.run(play(pod, counting)) == 0
    files = asyncio.run(tree_of(store, snapshots(store)[-1]))
    assert (files["log"], files["lines"]) == ("x\n", "1\n")
    return story(store), counting.writes


WRITES = range(1, 28)


def test_the_range_of_writes_below_covers_a_whole_run(calm):
    assert calm[1] <= max(WRITES) + 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_a_lost_pod_is_followed_by_one_that_goes_on(calm, write, after):
    store = make_store(DOCUMENT)
    with make_pod(DOCUMENT) as first:
        code = asyncio.run(play(first, CrashingStore(store, write, after=after)))
    if code != 0:
        with make_pod(DOCUMENT, incarnation=2) as second:
            assert asyncio.run(play(second, store)) == 0

    assert story(store) == calm[0]


@pytest.mark.parametrize("write", WRITES)
def test_a_sidecar_started_again_in_its_pod_goes_on(calm, write):
    store = make_store(DOCUMENT)

    async def scenario(pod: Pod) -> None:
        if await play(pod, CrashingStore(store, write)) == 0:
            return
        program = Program(replace(pod.settings, nonce="again"), store)
        life = asyncio.ensure_future(program.run())
        if await started(program, life) and not pod.runners:
            pod.restore()
            pod.start_runner()
        assert await life == 0
        await program.server.close()

    with make_pod(DOCUMENT) as pod:
        asyncio.run(scenario(pod))
        assert pod.runners[0].wait(10) == 0

    assert story(store) == calm[0]
    assert all(entry.writer.incarnation == 1 for entry in snapshots(store))


def test_git_and_home_of_the_last_round_come_back_in_another_pod():
    script = """
steps:
  - run: {command: [sh, -c, 'echo 1 > f; git add f; git commit -qm one; echo note > $HOME/note']}
rounds:
  2:
    - run: {command: [sh, -c, 'git log --format=%s > log; cat $HOME/note > n; touch $HOME/ready']}
    - run: {command: [sh, -c, 'git status --porcelain > status']}
"""
    document = make_document("scripted", script, loop=LoopProfile(outer_loop_count=2))
    store = make_store(document)

    with make_pod(document) as first:
        asyncio.run(play_until(first, store, first.home / "ready"))
    with make_pod(document, incarnation=2) as second:
        assert asyncio.run(play(second, store)) == 0

    files = asyncio.run(tree_of(store, snapshots(store)[-1]))
    assert (files["log"], files["n"]) == ("one\nbase\n", "note\n")
    assert files["status"].splitlines() == ["?? log", "?? n", "?? status"]


def test_a_running_job_is_taken_over_by_a_sidecar_started_again():
    script = "steps: [{run: {command: [sh, -c, 'echo x >> log; sleep 1; echo y >> log']}}]"
    document = make_document("scripted", script)
    store = make_store(document)

    async def scenario(pod: Pod) -> None:
        await play_until(pod, store, pod.workspace / "log")
        again = Program(replace(pod.settings, nonce="again"), store)
        assert await again.run() == 0
        await again.server.close()

    with make_pod(document) as pod:
        asyncio.run(scenario(pod))
        assert (pod.workspace / "log").read_text() == "x\ny\n"

    end = read_queue(store)[-1]
    assert isinstance(end, EndEntry)
    assert 1.0 <= end.episode.spent_seconds < 5
    restart = next(event for event in read_trace(store) if event.type == "infra_restart")
    assert restart.data["in_place"] is True


def test_a_sidecar_started_again_after_the_end_only_closes():
    document = make_document("oracle")
    store = make_store(document)

    async def scenario(pod: Pod) -> None:
        assert await play(pod, store) == 0
        before = dict(store.objects)
        again = Program(replace(pod.settings, nonce="again"), store)
        assert await again.run() == 0
        await again.server.close()
        assert store.objects == before

    with make_pod(document) as pod:
        asyncio.run(scenario(pod))
        assert pod.termination().kind == "end"


def test_a_restart_is_counted_and_traced_but_is_no_round():
    store = make_store(DOCUMENT)
    with make_pod(DOCUMENT) as first:
        assert asyncio.run(play(first, CrashingStore(store, 9))) == 5
    with make_pod(DOCUMENT, incarnation=2) as second:
        assert asyncio.run(play(second, store)) == 0

    end = read_queue(store)[-1]
    assert isinstance(end, EndEntry)
    assert end.episode.infra_restarts == 1
    assert [record.number for record in end.episode.rounds] == [1, 2]
    restart = next(event for event in read_trace(store) if event.type == "infra_restart")
    assert restart.writer.startswith("recorder-2-")
    assert restart.data["in_place"] is False
    assert not any(key.startswith(f"{PREFIX}verdicts") for key in store.objects)


@pytest.mark.parametrize("kind", ["refused", "lost"])
def test_a_store_that_fails_now_and_then_changes_nothing(calm, kind):
    store = make_store(DOCUMENT)
    faulty = FaultyStore(store, **{kind: range(12, 400, 3)})
    with make_pod(DOCUMENT) as pod:
        assert asyncio.run(play(pod, faulty)) == 0

    assert faulty.calls > 30
    assert story(store) == calm[0]
    numbers = [event.sequence for event in read_trace(store)]
    assert numbers == list(range(len(numbers)))
