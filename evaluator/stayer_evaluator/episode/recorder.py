"""The recorder's life: open, let the rounds run, close. `record` returns the exit status.

open     proofs, takeover of the queue, downloads; snapshot 0; /started
rounds   launch, snapshots beside it, round end: snapshot, layer, transcript, trace
close    last snapshot, trace, `end`, termination message, quit job
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import structlog

from stayer_evaluator.episode import rounds
from stayer_evaluator.episode.agent import (
    Agent,
    CannotStart,
    Catalog,
    Launched,
    launch,
    prepare_agent,
)
from stayer_evaluator.episode.bench import Bench
from stayer_evaluator.episode.config import RecorderSettings
from stayer_evaluator.episode.opening import Opening
from stayer_evaluator.episode.prompts import build_prompt, template_digest
from stayer_evaluator.episode.sampler import Sampler
from stayer_evaluator.episode.story import earlier_story
from stayer_evaluator.episode.trace import TraceWriter
from stayer_evaluator.episode.transcript import upload_transcript
from stayer_evaluator.harnesses.describe import StepsHarness
from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.storage.store import ObjectStore

log = structlog.get_logger(__name__)


class Recorder:
    """One episode from /started to its end."""

    def __init__(
        self,
        settings: RecorderSettings,
        store: ObjectStore,
        opening: Opening,
        bench: Bench,
        sampler: Sampler,
        trace: TraceWriter,
        *,
        catalog: Catalog,
        wall: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.store = store
        self.opening = opening
        self.bench = bench
        self.sampler = sampler
        self.trace = trace
        self.catalog = catalog
        self.wall = wall
        self.last_words = ""

    async def begin(self) -> None:
        """Trace the start and make snapshot 0. Before /started, hence before any agent code."""
        document = self.opening.document
        if self.sampler.last is None:
            self.trace.add("trial_started", **self._configuration())
        if self.opening.resumed:
            await self.sampler.insist(self._catch_up)
            self._trace_restart()
        if self.sampler.last is None:
            await self.sampler.must_sample()
        log.info("started", trial=document.trial, incarnation=self.settings.incarnation)

    async def _catch_up(self) -> None:
        """Trace what earlier recorders made durable but died before tracing."""
        told = await earlier_story(self.store, self.opening.keys, self.opening.queue)
        self.sampler.catch_up(told.snapshots, told.traced)
        for record in self.bench.cursor.rounds:
            if record.number not in told.rounds:
                data = record.model_dump(mode="json", exclude={"number"})
                self.trace.add("round_ended", self._snapshot(), round=record.number, **data)

    def _trace_restart(self) -> None:
        cursor = self.bench.cursor
        self.trace.add(
            "infra_restart",
            self._snapshot(),
            incarnation=self.settings.incarnation,
            in_place=self.opening.in_place,
            round=cursor.round,
            step=cursor.step,
            spent_seconds=cursor.spent_seconds,
        )

    def _configuration(self) -> dict[str, Any]:
        document = self.opening.document
        harness = self.catalog.get(self.opening.agent.harness)
        return {
            "trial": document.model_dump(mode="json", exclude={"agent": {"env", "script"}}),
            "trial_sha256": self.settings.trial_sha256,
            "harness": None if harness is None else harness.model_dump(mode="json"),
            "base": self.opening.base.sha256,
            "prompt_template": template_digest(),
            "limits": self.settings.limits,
            "user_namespace": self.opening.user_namespace,
            "must_fail": [f"{host}:{port}" for host, port in self.settings.must_fail],
        }

    async def run(self) -> rounds.Finish:
        """All rounds. Raises Drained, Fenced, StoreError."""
        await self.sampler.insist(self.trace.flush)
        version = await self.bench.hello(self.settings.timing.runner_patience)
        log.info("runner answers", version=version)
        try:
            agent = await self.sampler.insist(self._prepare)
        except CannotStart as error:
            return rounds.Finish(FailureMode.AGENT_STARTUP_ERROR, str(error))
        while True:
            decision = rounds.next_round(
                self.opening.document.loop,
                float(self.opening.document.timeouts.agent_seconds),
                self.bench.cursor,
                self._residual(),
                max_rounds=agent.max_rounds,
            )
            if isinstance(decision, rounds.Finish):
                return self._explained(decision)
            await self._round(agent, decision)

    def _explained(self, finish: rounds.Finish) -> rounds.Finish:
        """With what the last round said of its failure, where this process saw it."""
        if finish.failure_mode is FailureMode.NONE or not self.last_words:
            return finish
        return rounds.Finish(finish.failure_mode, f"{finish.message}: {self.last_words}")

    async def _prepare(self) -> Agent:
        side = self.settings.task_side
        return await prepare_agent(self.store, self.opening, side, self.catalog)

    def _residual(self) -> tuple[str, ...]:
        last = self.sampler.last
        units = tuple(unit.id for unit in self.opening.task.units)
        return rounds.residual(units, last.implemented if last is not None else ())

    async def _round(self, agent: Agent, decision: rounds.Round) -> None:
        """One round with its launches. Raises Drained, Fenced, StoreError."""
        self.trace.add(
            "round_started",
            self._snapshot(),
            round=decision.number,
            limit_seconds=round(decision.seconds, 3),
            residual=list(self._residual()),
        )
        async with self._sampling():
            launched = await self._launches(agent, decision)
        await self.sampler.must_sample()
        self._end_round(decision.number, launched)
        await self.sampler.save_layer()
        await self._keep(decision.number, launched)

    @contextlib.asynccontextmanager
    async def _sampling(self) -> AsyncIterator[None]:
        """Timed samples while a round runs; a fenced sampler ends the round with it."""
        if self._steps_only:
            yield
            return
        async with asyncio.TaskGroup() as group:
            interval = self.opening.document.snapshots.interval_seconds
            sampling = group.create_task(self.sampler.every(interval))
            yield
            sampling.cancel()

    async def _launches(self, agent: Agent, decision: rounds.Round) -> Launched:
        """Launch until something other than a rate limit ends the round (evaluation.md §5)."""
        while True:
            launched = await launch(
                agent,
                self.bench,
                self.sampler,
                decision.number,
                decision.seconds,
                self._prompt(decision.number),
            )
            if launched.end.failure_mode is not FailureMode.AGENT_RATE_LIMITED:
                return launched
            left = self.bench.left(decision.seconds)
            wait = rounds.backoff_seconds(self.opening.document.loop, self.bench.retries, left)
            self.trace.add(
                "rate_limited",
                self._snapshot(),
                round=decision.number,
                retry=self.bench.retries + 1,
                wait_seconds=wait,
            )
            if wait is None:
                return launched
            self.bench.count_retry()
            await self.bench.wait(wait)

    def _prompt(self, number: int) -> str:
        side = self.settings.task_side
        attached = self.opening.document.test_visibility == "attached"
        return build_prompt(
            self.opening.task.instruction,
            number,
            self._residual(),
            workspace=side.workspace,
            suite=side.suite if attached else None,
        ).text

    def _end_round(self, number: int, launched: Launched) -> None:
        last = self.sampler.last
        # A snapshot beyond the seeded workspace is only ever made of a change.
        changed = last is not None and last.snapshot > 0 and last.episode.round == number
        self.bench.finish_round(launched.end.failure_mode, changed=changed)
        record = self.bench.cursor.rounds[-1]
        self.last_words = launched.end.message
        steps = [{k: v for k, v in entry.items() if k != "output"} for entry in launched.steps]
        self.trace.add(
            "round_ended",
            self._snapshot(),
            round=number,
            seconds=round(record.seconds, 3),
            failure_mode=record.failure_mode.value,
            message=launched.end.message,
            changed=record.changed,
            rate_limit_retries=record.rate_limit_retries,
            compactions=launched.compactions,
            steps=steps,
        )
        log.info("round ended", round=number, failure_mode=record.failure_mode.value)

    async def _keep(self, number: int, launched: Launched) -> None:
        """Make transcript and trace of the round durable. Raises StoreError."""
        name = f"round-{number:04d}.{self.trace.writer}"
        keys, output = self.opening.keys, launched.output
        await self.sampler.insist(lambda: upload_transcript(self.store, keys, name, output))
        await self.sampler.insist(self.trace.flush)

    async def close(self, finish: rounds.Finish) -> None:
        """Last snapshot, trace, `end` (design.md §4). Raises Fenced, StoreError."""
        await self.sampler.must_sample(reread=True)
        await self.sampler.insist(self.trace.flush)
        end = EndEntry(
            number=0,
            writer=self.opening.queue.writer,
            time=self.wall(),
            failure_mode=finish.failure_mode,
            message=finish.message,
            episode=self.bench.cursor,
        )
        await self.sampler.insist(lambda: self._append(end))
        log.info("ended", failure_mode=finish.failure_mode.value, message=finish.message)

    async def _append(self, end: EndEntry) -> None:
        """Append the end; an earlier try whose answer was lost may have done it."""
        queue = self.opening.queue
        await queue.settle()
        if queue.end is None:
            await queue.append(lambda number: end.model_copy(update={"number": number}))

    async def drain(self) -> None:
        """The pod is being stopped: one last snapshot, no `end`. Raises Fenced, StoreError.

        Where samples are taken between steps only, the snapshot after the last finished step is
        the last one: a resume does the interrupted step again from there.
        """
        if not self._steps_only:
            await self.sampler.must_sample(reread=True)
        await self.sampler.save_layer()
        await self.sampler.insist(self.trace.flush)
        log.info("drained", snapshot=self._snapshot())

    @property
    def _steps_only(self) -> bool:
        harness = self.catalog.get(self.opening.agent.harness)
        steps = isinstance(harness, StepsHarness)
        return steps and self.opening.document.snapshots.between_steps_only

    def _snapshot(self) -> int | None:
        return None if self.sampler.last is None else self.sampler.last.snapshot
