"""Snapshots over an episode: when they are due, what the trace says of them, who waits for them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Any

from stayer_evaluator.episode.trace import TraceWriter
from stayer_evaluator.records.queue import EpisodeCursor, SnapshotEntry
from stayer_evaluator.snapshots.resume import ResumeLayer
from stayer_evaluator.snapshots.take import Snapshotter
from stayer_evaluator.storage.store import StoreError

PLAN = "agent_plans/plan.json"


class Sampler:
    """Takes snapshots one at a time, whoever asks.

    A timed sample that fails is simply taken at the next tick; `must_sample` insists.
    """

    def __init__(
        self,
        snapshotter: Snapshotter,
        layer: ResumeLayer,
        trace: TraceWriter,
        cursor: Callable[[], EpisodeCursor],
        *,
        wall: Callable[[], float],
        patience: float,
        pause: float,
        layer_interval: float,
    ) -> None:
        self.errors = 0
        self._snapshotter = snapshotter
        self._layer = layer
        self._trace = trace
        self._cursor = cursor
        self._wall = wall
        self._patience = patience
        self._pause = pause
        self._layer_interval = layer_interval
        self._layer_saved = time.monotonic()
        self._lock = asyncio.Lock()
        self._paused = False
        last = snapshotter.queue.last_snapshot
        self._noted = -1 if last is None else last.snapshot
        self._implemented: set[str] = set()
        self._plan: list[str] | None = None

    @property
    def last(self) -> SnapshotEntry | None:
        """The newest durable snapshot."""
        return self._snapshotter.queue.last_snapshot

    @property
    def count(self) -> int:
        """Durable snapshots of the trial."""
        return 0 if self.last is None else self.last.snapshot + 1

    def catch_up(self, entries: Iterable[SnapshotEntry], traced: Collection[int]) -> None:
        """Take in the snapshots of earlier recorders, in order; those that their traces lack, as
        they died before they could store them, are traced now.
        """
        for entry in entries:
            self._note(entry, silent=entry.snapshot in traced)

    def close(self) -> None:
        """End the threads."""
        self._snapshotter.close()
        self._layer.close()

    async def every(self, seconds: float) -> None:
        """Sample on a fixed cadence until cancelled; a late sample moves no later one."""
        due = time.monotonic() + seconds
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + seconds, time.monotonic())
            if not self._paused:
                await self.sample()

    @contextlib.asynccontextmanager
    async def pause(self) -> AsyncIterator[None]:
        """No timed sample inside: between a step's work and its mark nobody may look."""
        self._paused = True
        try:
            async with self._lock:
                pass  # a sample under way ends first
            yield
        finally:
            self._paused = False

    async def sample(self) -> None:
        """One timed sample. Raises Fenced and what no waiting mends."""
        try:
            async with self._lock:
                await self._take()
                await self._save_layer_when_due()
                if self._trace.due:
                    await self._trace.flush()
        except (StoreError, OSError) as error:
            self._count(error)

    async def must_sample(self, *, reread: bool = False, force: bool = False) -> None:
        """One sample that is durable when this returns; with `force` also of an unchanged tree.

        Raises StoreError when the store was out of reach for all of the patience, Fenced.
        """
        async with self._lock:
            await self.insist(lambda: self._take(reread=reread, force=force))
            with contextlib.suppress(StoreError):
                await self._save_layer_when_due()
                if self._trace.due:
                    await self._trace.flush()

    async def save_layer(self) -> None:
        """Save `.git` and HOME now; what cannot be saved is saved next time."""
        async with self._lock:
            try:
                await self._layer.save(self._wall(), self._cursor())
                self._layer_saved = time.monotonic()
            except (StoreError, OSError) as error:
                self._count(error)

    async def insist(self, act: Callable[[], Any]) -> Any:
        """Repeat `act` until it succeeds or the patience is over.

        Raises what act raised last; Fenced and other final errors at once.
        """
        give_up = time.monotonic() + self._patience
        while True:
            try:
                return await act()
            except (StoreError, OSError) as error:
                self._count(error)
                if time.monotonic() >= give_up:
                    raise
            await asyncio.sleep(self._pause)

    def _count(self, error: StoreError | OSError) -> None:
        """Errors that waiting may mend are counted, others raised."""
        if isinstance(error, StoreError) and not error.retryable:
            raise error
        self.errors += 1

    async def _take(self, *, reread: bool = False, force: bool = False) -> None:
        """Entries whose fate was open are noted too, once they are known to be durable."""
        await self._snapshotter.queue.settle()
        self._note_last()
        await self._snapshotter.take(self._cursor(), self._wall(), reread=reread, force=force)
        self._note_last()

    def _note_last(self) -> None:
        last = self.last
        if last is not None and last.snapshot > self._noted:
            self._noted = last.snapshot
            self._note(last)

    def _note(self, entry: SnapshotEntry, *, silent: bool = False) -> None:
        """Bring what is known of the trial up to date, and unless `silent` tell the trace."""
        fresh = [slug for slug in entry.implemented if slug not in self._implemented]
        self._implemented.update(fresh)
        plan, before = _plan(entry), self._plan
        self._plan = plan
        if silent:
            return
        self._trace.add("snapshot_taken", entry.snapshot, **_facts(entry))
        for slug in fresh:
            self._trace.add("implemented", entry.snapshot, unit=slug)
        if plan is not None and plan != before:
            self._trace.add("plan_seen", entry.snapshot, path=PLAN, hashes=plan)

    async def _save_layer_when_due(self) -> None:
        if time.monotonic() - self._layer_saved >= self._layer_interval:
            await self._layer.save(self._wall(), self._cursor())
            self._layer_saved = time.monotonic()


def _facts(entry: SnapshotEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "tree": entry.tree,
        "files": entry.files,
        "bytes": entry.bytes,
        "round": entry.episode.round,
        "step": entry.episode.step,
        "reports": len(entry.reports),
    }


def _plan(entry: SnapshotEntry) -> list[str] | None:
    """Content hashes of the plan as the snapshot has it. A plan that the base tree brought is none
    of the agent's.
    """
    for record in entry.changed:
        if record.path == PLAN and record.type == "file":
            return [chunk.hash for chunk in record.chunks]
    return None
