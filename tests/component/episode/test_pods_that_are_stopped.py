"""Drain, fence, lost task containers, and pods that must not start."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from makers_episode import (
    PREFIX,
    Pod,
    appears,
    make_document,
    make_pod,
    make_store,
    play,
    read_queue,
    read_trace,
    snapshots,
    started,
    tree_of,
)
from stayer_evaluator.episode.main import Program
from stayer_evaluator.records.queue import EndEntry, Writer
from stayer_evaluator.records.reports import TerminationMessage
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.queue import QueueWriter

HANGING = make_document(
    "scripted",
    "steps: [{applyDiff: {unit: parser}}, "
    "{run: {command: [sh, -c, 'echo half > half; touch $HOME/ready; sleep 300']}}]",
    snapshots=SnapshotSettings(interval_seconds=1),
)


async def begin(pod: Pod, program: Program) -> "asyncio.Future[int]":
    """A pod at work, in the middle of the second step."""
    pod.seed()
    life = asyncio.ensure_future(program.run())
    assert await started(program, life)
    pod.restore()
    pod.start_runner()
    await appears(pod.home / "ready", life)
    return life


def terminate(pod: Pod) -> None:
    """SIGTERM to the runner as the kubelet sends it: to PID 1 of the container."""
    unshare = pod.runners[0].pid
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)


async def stop(pod: Pod, program: Program, life: "asyncio.Future[int]") -> int:
    """As the kubelet does: a signal to the task container, and the preStop call."""
    terminate(pod)
    await program.drain()
    code = await life
    await program.server.close()
    return code


def test_a_stopped_pod_takes_a_last_snapshot_and_writes_no_end():
    store = make_store(HANGING)

    async def scenario(pod: Pod) -> int:
        program = Program(pod.settings, store)
        life = await begin(pod, program)
        terminate(pod)
        await program.drain()  # what the kubelet's preStop call does, at the same time
        assert life.done() or program.settled.is_set()
        code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 143
        assert pod.runners[0].wait(10) == 143
        message = pod.termination()

    last = read_queue(store)[-1]
    assert last.kind == "snapshot"
    assert asyncio.run(tree_of(store, snapshots(store)[-1]))["half"] == "half\n"
    assert (message.kind, message.snapshots_taken) == ("stopped", snapshots(store)[-1].snapshot + 1)


def test_between_steps_only_means_that_half_a_step_is_no_snapshot():
    document = HANGING.model_copy(update={"snapshots": SnapshotSettings(between_steps_only=True)})
    store = make_store(document)

    async def scenario(pod: Pod) -> int:
        program = Program(pod.settings, store)
        life = await begin(pod, program)
        return await stop(pod, program, life)

    with make_pod(document) as pod:
        assert asyncio.run(scenario(pod)) == 143

    assert [entry.episode.step for entry in snapshots(store)] == [None, 0]


def test_a_task_container_that_ends_by_itself_is_no_end_of_the_episode():
    store = make_store(HANGING)

    async def scenario(pod: Pod) -> int:
        program = Program(pod.settings, store)
        life = await begin(pod, program)
        pod.runners[0].kill()
        await asyncio.sleep(0.1)
        await program.drain()  # the kubelet ends the sidecar once the main container is gone
        code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 143
    assert read_queue(store)[-1].kind == "snapshot"


def test_a_pod_that_is_stopped_before_its_task_starts_ends_too():
    store = make_store(HANGING)

    async def scenario(pod: Pod) -> int:
        pod.seed()
        program = Program(pod.settings, store)
        life = asyncio.ensure_future(program.run())
        assert await started(program, life)
        await program.drain()
        code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 143
        assert pod.termination().kind == "stopped"


class Outage:
    """A store that answers until `begins` is set, and then nobody."""

    def __init__(self, inner: MemoryStore) -> None:
        self.inner = inner
        self.begins = asyncio.Event()

    async def _answered(self) -> None:
        if self.begins.is_set():
            await asyncio.Event().wait()

    async def create(self, key: str, data: bytes) -> bool:
        await self._answered()
        return await self.inner.create(key, data)

    async def get(self, key: str) -> bytes:
        await self._answered()
        return await self.inner.get(key)

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        await self._answered()
        return await self.inner.get_range(key, offset, length)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        await self._answered()
        async for piece in self.inner.stream(key):
            yield piece


def test_a_pod_that_is_stopped_while_its_recorder_waits_for_the_store_ends_at_once():
    store = Outage(make_store(HANGING))

    async def scenario(pod: Pod) -> int:
        pod.seed()
        store.begins.set()
        program = Program(pod.settings, store)
        life = asyncio.ensure_future(program.run())
        await asyncio.wait((life,), timeout=0.3)
        assert not life.done()
        await asyncio.wait_for(program.drain(), 5)
        code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 143
        assert pod.termination().kind == "stopped"
    assert store.inner.objects.keys() == make_store(HANGING).objects.keys()


@contextlib.asynccontextmanager
async def operator_saying(status: int) -> AsyncIterator[str]:
    """Answers every report; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


SHORT = make_document("scripted", HANGING.agent.script.replace("sleep 300", "sleep 0.5"))


@pytest.mark.parametrize("when", ["before the first job", "in a step", "after a step"])
def test_a_pod_of_a_deleted_run_does_not_wait_for_the_store(when: str):
    document = SHORT if when == "after a step" else HANGING
    store = Outage(make_store(document))

    async def scenario(pod: Pod) -> int:
        pod.settings.places.token.write_text("token")
        async with operator_saying(410) as url:
            program = Program(replace(pod.settings, progress_url=url), store)
            if when == "before the first job":
                pod.seed()
                life = asyncio.ensure_future(program.run())
                assert await started(program, life)
                store.begins.set()
                pod.restore()
                pod.start_runner()
            else:
                life = await begin(pod, program)
                store.begins.set()
            await asyncio.wait((life,), timeout=1)
            assert not life.done()
            await asyncio.wait_for(program.drain(), 10)
            code = await life
        await program.server.close()
        return code

    with make_pod(document) as pod:
        assert asyncio.run(scenario(pod)) == 143
        assert pod.termination().kind == "stopped"


class HardOfHearing(Program):
    """Something in its life takes a cancellation for its own and goes on."""

    async def _guarded(self) -> tuple[int, TerminationMessage]:
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        return await super()._guarded()


def test_a_question_that_fails_is_no_end_of_the_trial(monkeypatch: pytest.MonkeyPatch):
    document = HANGING.model_copy(update={"snapshots": SnapshotSettings(interval_seconds=600)})
    store = make_store(document)

    async def fail(*asked: object) -> None:
        raise RuntimeError

    async def scenario(pod: Pod) -> int:
        program = Program(pod.settings, store)
        life = await begin(pod, program)
        monkeypatch.setattr("stayer_evaluator.episode.main.until_over", fail)
        return await stop(pod, program, life)

    with make_pod(document) as pod:
        assert asyncio.run(scenario(pod)) == 143

    assert asyncio.run(tree_of(store, snapshots(store)[-1]))["half"] == "half\n"


def test_a_life_that_overhears_its_cancellation_is_told_again():
    store = make_store(HANGING)

    async def scenario(pod: Pod) -> int:
        pod.settings.places.token.write_text("token")
        async with operator_saying(410) as url, asyncio.timeout(10):
            program = HardOfHearing(replace(pod.settings, progress_url=url), Outage(store))
            program.store.begins.set()
            life = asyncio.ensure_future(program.run())
            await program.drain()
            code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 143


@pytest.mark.parametrize("token", [b"token", b"\xff", None], ids=["", "no text", "no token"])
def test_a_pod_that_is_evicted_does_wait_for_it(token: bytes | None):
    """Also where nobody can be asked whether the trial is over."""
    store = Outage(make_store(HANGING))

    async def scenario(pod: Pod) -> bool:
        if token is not None:
            pod.settings.places.token.write_bytes(token)
        async with operator_saying(204) as url:
            program = Program(replace(pod.settings, progress_url=url), store)
            life = await begin(pod, program)
            store.begins.set()
            terminate(pod)
            draining = asyncio.ensure_future(program.drain())
            await asyncio.wait((draining,), timeout=4)
            waits = not draining.done()
            for task in (life, draining):
                task.cancel()
            await asyncio.wait((life, draining))
        await program.server.close()
        return waits

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod))


def test_an_old_recorder_stops_its_agent_once_another_pod_has_taken_over():
    store = make_store(HANGING)

    async def scenario(old: Pod) -> int:
        program = Program(old.settings, store)
        life = await begin(old, program)
        writer = Writer(incarnation=2, nonce="successor")
        await QueueWriter.begin(store, TrialKeys(PREFIX), writer, 0.0)
        (old.workspace / "news").write_text("makes the next sample differ")
        code = await life
        await program.server.close()
        return code

    with make_pod(HANGING) as old:
        assert asyncio.run(scenario(old)) == 3
        assert old.runners[0].wait(10) == 0
        assert old.termination().kind == "fenced"

    assert read_queue(store)[-1].writer == Writer(incarnation=2, nonce="successor")


def test_an_old_recorder_that_is_started_again_takes_nothing_back():
    store = make_store(HANGING)
    with make_pod(HANGING, incarnation=2) as new:

        async def scenario(pod: Pod) -> None:
            program = Program(pod.settings, store)
            life = await begin(pod, program)
            life.cancel()
            await asyncio.wait((life,))
            await program.server.close()

        asyncio.run(scenario(new))
    before = dict(store.objects)

    with make_pod(HANGING, incarnation=1) as old:
        assert asyncio.run(play(old, store)) == 3
        assert old.termination().kind == "fenced"

    assert store.objects == before


def test_a_pod_that_reaches_what_it_must_not_does_not_start():
    store = make_store(HANGING)

    async def scenario(pod: Pod) -> int:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        program = Program(replace(pod.settings, must_fail=(address,)), store)
        code = await program.run()
        await program.server.close()
        server.close()
        return code

    with make_pod(HANGING) as pod:
        assert asyncio.run(scenario(pod)) == 4
        message = pod.termination()

    assert (message.kind, message.reason) == ("error", "IsolationNotEnforced")
    assert read_queue(store) == []


def test_a_document_that_is_not_the_trials_stops_the_recorder():
    store = make_store(HANGING)
    with make_pod(make_document("nop")) as pod:
        assert asyncio.run(play(pod, store)) == 1
        message = pod.termination()

    assert message.reason == "RecorderFailed"
    assert "sha256" in message.message


def test_an_unknown_harness_is_a_failed_start_that_names_the_known_ones():
    document = make_document("astrologer")
    store = make_store(document)
    with make_pod(document) as pod:
        assert asyncio.run(play(pod, store)) == 0

    end = read_queue(store)[-1]
    assert isinstance(end, EndEntry)
    assert end.failure_mode == "agent_startup_error"
    assert "accepted are nop, oracle, scripted" in end.message
    assert not [event for event in read_trace(store) if event.type == "round_started"]
