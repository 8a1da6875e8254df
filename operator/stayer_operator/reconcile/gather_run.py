"""A RunView: the run and its trials from memory, its tasks and inventories from the store.

What can never change is read once and kept: a pinned task list, an inventory that exists. Results
are read only when the run may be complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import pydantic

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.task import Inventory
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.store import ObjectMissing, StoreError
from stayer_operator.api.conditions import (
    TERMINAL_TRIAL_PHASES,
    Reason,
    TrialCondition,
    TrialPhase,
)
from stayer_operator.core.observed import ObjectKey, RunObject, TrialObject
from stayer_operator.core.run.admission import Wait
from stayer_operator.core.run.needs import (
    ConfigMapTasks,
    RunNeeds,
    S3Tasks,
    run_needs,
    wants_results,
    wants_waits,
)
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.tasks import read_pinned
from stayer_operator.core.run.view import (
    FoundTasks,
    InventoryView,
    PinnedTasks,
    RunView,
    TasksTrouble,
    TasksView,
    TrialScore,
    TrialSummary,
)
from stayer_operator.errors import NotFound
from stayer_operator.ports import Cluster, Evidence, Observed, Telemetry
from stayer_operator.reconcile.admissions import Admissions
from stayer_operator.reconcile.ledger import Ledger

T = TypeVar("T")

READS_AT_ONCE = 4
LOOK_AGAIN = 30.0  # seconds until a missing inventory is looked for without a sign of it
SUFFIX = ".json"
_NO_WAIT = ("", "")
_TERMINAL = frozenset(phase.value for phase in TERMINAL_TRIAL_PHASES)


class _Summed(NamedTuple):
    """The summary of a Trial, and what it was made from."""

    trial: TrialObject
    wait: tuple[str, str]
    summary: TrialSummary


@dataclass(slots=True)
class RunMemory:
    """What was read and never changes: pinned task lists by key, with their digests, and
    inventories by task digest, for all runs. `looked`: when an inventory was last missing.
    `summaries`: of a run's Trials at its last pass, by UID.
    """

    pinned: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inventories: dict[str, InventoryView] = field(default_factory=dict)
    looked: dict[str, float] = field(default_factory=dict)
    summaries: dict[ObjectKey, dict[str, _Summed]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGathering:
    """Where views of runs come from."""

    observed: Observed
    cluster: Cluster
    evidence: Evidence
    telemetry: Telemetry
    ledger: Ledger
    admissions: Admissions
    settings: RunSettings
    memory: RunMemory = field(default_factory=RunMemory)

    async def gather(self, run: RunObject, now: float) -> RunView:
        """The view of a run. Store trouble is a part of it where the planner can say so; raises
        StoreError where results are needed, ClusterError for ConfigMaps that cannot be read.
        """
        needs = run_needs(run.manifest)
        trials = self._summaries(run)
        tasks = await self._tasks(run, needs)
        return RunView(
            manifest=run.manifest,
            tasks=tasks,
            scripts=await self._scripts(run, needs),
            inventories=await self._inventories(needs.pinned, trials, now),
            trials=trials,
            results=await self._results(run, trials),
            settings=self.settings,
            now=now,
        )

    def _summaries(self, run: RunObject) -> tuple[TrialSummary, ...]:
        """Most of a thousand Trials are as they were at the last pass."""
        before = self.memory.summaries.get(run.key, {})
        trials = self.observed.trials_of_run(run.uid)
        waits = wants_waits(trial.status.get("phase") for trial in trials)
        summed: dict[str, _Summed] = {}
        for trial in trials:
            wait = self._wait(trial) if waits else _NO_WAIT
            known = before.get(trial.uid)
            if known is None or known.trial is not trial or known.wait != wait:
                known = _Summed(trial, wait, _summary(trial, wait))
            summed[trial.uid] = known
        self.memory.summaries[run.key] = summed
        return tuple([known.summary for known in summed.values()])

    def _wait(self, trial: TrialObject) -> tuple[str, str]:
        """Why nothing moves: admission's word, the API server's, or the scheduler's."""
        if trial.status.get("phase") in _TERMINAL:
            return _NO_WAIT
        notes = self.ledger.find(trial.uid)
        if notes is not None and notes.trouble is not None:
            return notes.trouble
        admission: Wait | None = self.admissions.wait(trial.key)
        if admission is not None:
            return admission.reason.value, admission.message
        for pod in self.observed.pods(trial.key):
            condition = pod.condition("PodScheduled")
            if pod.is_unschedulable and condition is not None:
                return Reason.UNSCHEDULABLE.value, condition.message
        return _NO_WAIT

    async def _tasks(self, run: RunObject, needs: RunNeeds) -> TasksView:
        if (known := self.memory.pinned.get(needs.pinned)) is not None:
            return PinnedTasks(data=known)
        try:
            data = await self.evidence.get(needs.pinned)
        except ObjectMissing:
            return await self._source(run, needs)
        except StoreError as error:
            return self._unavailable(error)
        self.memory.pinned[needs.pinned] = data
        self.memory.digests[needs.pinned] = tuple(task.digest for task in read_pinned(data).tasks)
        return PinnedTasks(data=data)

    async def _source(self, run: RunObject, needs: RunNeeds) -> TasksView:
        match needs.source:
            case None:
                return TasksTrouble(
                    reason=Reason.TASK_SET_NOT_FOUND,
                    message="spec.tasks.source names neither s3.prefix nor configMap.name",
                )
            case S3Tasks(prefix=prefix):
                return await self._from_store(prefix)
            case ConfigMapTasks(name=name):
                data = await self._config_map(run.namespace, name)
        files = {
            key.removesuffix(SUFFIX): text.encode()
            for key, text in (data or {}).items()
            if key.endswith(SUFFIX)
        }
        if not files:
            said = "does not exist" if data is None else f"has no key that ends in {SUFFIX}"
            message = f"spec.tasks.source.configMap.name: ConfigMap {name} {said}"
            return TasksTrouble(reason=Reason.TASK_SET_NOT_FOUND, message=message)
        return FoundTasks(files=files)

    async def _from_store(self, prefix: str) -> TasksView:
        try:
            keys = [
                key
                for key in await self.evidence.keys(f"{prefix}/")
                if key.endswith(SUFFIX) and "/" not in key.removeprefix(f"{prefix}/")
            ]
            found = await self._read_all(keys, bytes)
        except StoreError as error:
            return self._unavailable(error)
        if not found:
            return TasksTrouble(
                reason=Reason.TASK_SET_NOT_FOUND,
                message=f"spec.tasks.source.s3.prefix: nothing below {prefix}/; "
                "`stayer tasks push` puts tasks there",
            )
        return FoundTasks(
            files={
                key.removeprefix(f"{prefix}/").removesuffix(SUFFIX): data
                for key, data in found.items()
            }
        )

    def _unavailable(self, error: StoreError) -> TasksTrouble:
        self.telemetry.store_failed("get")
        return TasksTrouble(reason=Reason.STORE_UNAVAILABLE, message=str(error))

    async def _scripts(
        self, run: RunObject, needs: RunNeeds
    ) -> Mapping[tuple[str, str], str | None]:
        maps = {
            name: await self._config_map(run.namespace, name)
            for name in sorted({name for name, _ in needs.scripts})
        }
        return {(name, key): (maps[name] or {}).get(key) for name, key in needs.scripts}

    async def _config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Its data; None when there is no such ConfigMap."""
        try:
            raw = await self.cluster.get_config_map(namespace, name)
        except NotFound:
            return None
        data: Mapping[str, str] = raw.get("data") or {}
        return data

    async def _inventories(
        self, pinned: str, trials: tuple[TrialSummary, ...], now: float
    ) -> Mapping[str, InventoryView]:
        """What exists of the inventories of the run's tasks, once these are fixed. Trouble with
        one leaves it out: the run waits for it, and looks again.
        """
        memory = self.memory
        digests = memory.digests.get(pinned, ())
        if memory.inventories.keys() >= set(digests):
            return {digest: memory.inventories[digest] for digest in digests}
        taken = {
            trial.task_digest
            for trial in trials
            if trial.kind is TrialKind.INVENTORY and trial.phase is TrialPhase.SUCCEEDED
        }
        wanted = [
            digest
            for digest in digests
            if digest not in memory.inventories
            and (digest in taken or now - memory.looked.get(digest, 0.0) >= LOOK_AGAIN)
        ]
        memory.looked.update(dict.fromkeys(wanted, now))
        try:
            found = await self._read_all((TaskKeys(d).inventory for d in wanted), _inventory)
        except StoreError:
            self.telemetry.store_failed("get")
            found = {}
        for digest in wanted:
            if (view := found.get(TaskKeys(digest).inventory)) is not None:
                memory.inventories[digest] = view
        return {d: memory.inventories[d] for d in digests if d in memory.inventories}

    async def _results(
        self, run: RunObject, trials: tuple[TrialSummary, ...]
    ) -> Mapping[str, TrialScore] | None:
        if not wants_results(run.manifest, trials):
            return None
        keys = {
            trial.results: trial.name
            for trial in trials
            if trial.results
            and trial.phase in TERMINAL_TRIAL_PHASES
            and trial.kind is TrialKind.ATTEMPT
        }
        found = await self._read_all(keys, _score)
        return {keys[key]: score for key, score in found.items()}

    async def _read_all(self, keys: Iterable[str], made: Callable[[bytes], T]) -> dict[str, T]:
        """What is `made` of those objects that exist, some at a time. Raises StoreError.

        A few readers and not a task for each key: one that waits takes 1.5 KB.
        """
        wanted = list(keys)
        left = deque(wanted)
        found: dict[str, T] = {}

        async def read_on() -> None:
            while left:
                key = left.popleft()
                with suppress(ObjectMissing):
                    found[key] = made(await self.evidence.get(key))

        try:
            await asyncio.gather(*(read_on() for _ in range(min(READS_AT_ONCE, len(wanted)))))
        finally:
            left.clear()
        return {key: found[key] for key in wanted if key in found}

    def forget(self, key: ObjectKey) -> None:
        """A run is gone: drop its task list and what was summed up of its Trials."""
        self.memory.summaries.pop(key, None)
        prefix = f"runs/{key.namespace}/{key.name}-"
        for pinned in [known for known in self.memory.pinned if known.startswith(prefix)]:
            del self.memory.pinned[pinned]
            self.memory.digests.pop(pinned, None)


def _summary(trial: TrialObject, wait: tuple[str, str]) -> TrialSummary:
    spec, status = trial.spec, trial.status
    task = spec.get("task") or {}
    return TrialSummary(
        name=trial.name,
        uid=trial.uid,
        kind=trial.kind,
        task=task.get("name", ""),
        task_digest=task.get("digest", ""),
        agent=spec.get("agent") or "",
        model=spec.get("model") or "",
        loop=spec.get("loopProfile") or "",
        attempt=spec.get("attempt") or 1,
        generation=spec.get("generation") or 0,
        restarts=spec.get("restarts") or 0,
        begins_again=_begins_again(trial),
        phase=TrialPhase(status.get("phase") or TrialPhase.PENDING),
        deleting=trial.deleted,
        resolved=status.get("resolved"),
        failure_mode=status.get("failureMode") or "",
        message=status.get("message") or "",
        regressions=status.get("regressions") or 0,
        waits_for=wait[0],
        waits_message=wait[1],
        results=status.get("results") or "",
    )


def _begins_again(trial: TrialObject) -> bool:
    """Its agent was lost, the run wants a new beginning, and there were not too many of them."""
    spec = trial.spec
    if spec.get("onAgentLoss") != "restart":
        return False
    conditions = trial.status.get("conditions") or ()
    lost = any(
        c.get("type") == TrialCondition.COMPLETE and c.get("reason") == Reason.AGENT_LOST
        for c in conditions
    )
    return lost and int(spec.get("restarts") or 0) < int(spec.get("infraRetries") or 0)


def _score(data: bytes) -> TrialScore:
    return TrialScore.of(TrialResults.from_bytes(data))


def _inventory(data: bytes) -> InventoryView | None:
    try:
        inventory = Inventory.from_bytes(data)
    except pydantic.ValidationError:
        return None
    return InventoryView(accepted=inventory.accepted, problems=inventory.problems)
