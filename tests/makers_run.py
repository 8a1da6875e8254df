"""Runs, tasks and a small world for tests of the run core."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stayer_evaluator.records.outcomes import FailureMode, TrialKind
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.run import RunTask
from stayer_evaluator.records.run_results import RunResults
from stayer_evaluator.records.task import TaskRecord, UnitRecord
from stayer_evaluator.records.trial import TrialDocument
from stayer_operator.api.conditions import Reason, TrialPhase
from stayer_operator.core.plan import (
    Action,
    CreateNetworkPolicy,
    CreateTrial,
    DeleteRun,
    Event,
    Plan,
    PutObject,
)
from stayer_operator.core.run.needs import run_needs, wants_results
from stayer_operator.core.run.planner import plan_run
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.view import (
    FoundTasks,
    InventoryView,
    PinnedTasks,
    RunView,
    TasksTrouble,
    TrialScore,
    TrialSummary,
)

NAMESPACE = "lab"
RUN = "demo"
RUN_UID = "11111111-1111-4111-8111-111111111111"
NOW = 1_800_000_000.0


def make_record(name: str = "parser", **changes: Any) -> TaskRecord:
    units = changes.pop("units", ("lexer", "grammar"))
    return TaskRecord(
        **{
            "name": name,
            "digest": (name.encode().hex() + "0" * 64)[:64],
            "tree_digest": "e" * 64,
            "image": f"registry.example/{name}@sha256:" + "b" * 64,
            "instruction": "Work through requirements/.",
            "units": tuple(UnitRecord(id=unit, layer=0, has_tests=True) for unit in units),
            "reference_order": units,
            "depth": 1,
            **changes,
        }
    )


def make_task(name: str = "parser", **changes: Any) -> RunTask:
    return RunTask.of(make_record(name, **changes))


def make_spec(**changes: Any) -> dict[str, Any]:
    return {
        "benchmark": "loops",
        "tasks": {"source": {"s3": {"prefix": "tasksets/demo"}}},
        "matrix": {"agents": [{"name": "oracle", "harness": "oracle"}]},
        **changes,
    }


def make_manifest(spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "stayer.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {
            "name": RUN,
            "namespace": NAMESPACE,
            "uid": RUN_UID,
            "resourceVersion": "1",
            "generation": 1,
            **metadata,
        },
        "spec": copy.deepcopy(dict(spec if spec is not None else make_spec())),
    }


class KilledError(Exception):
    """The operator was killed here."""


@dataclass
class World:
    """What a cluster and a store would hold: applies plans of one run as the real shell does."""

    manifest: dict[str, Any] = field(default_factory=make_manifest)
    source: dict[str, bytes] | None = field(
        default_factory=lambda: {
            name: make_record(name).to_bytes() for name in ("ledger", "parser")
        }
    )
    scripts: dict[tuple[str, str], str | None] = field(default_factory=dict)
    inventories: dict[str, InventoryView] = field(default_factory=dict)
    settings: RunSettings = field(default_factory=RunSettings)
    now: float = NOW
    trials: dict[str, TrialSummary] = field(default_factory=dict)
    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    policies: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    status_writes: int = 0
    deleted: bool = False
    waits: Reason | None = None
    budget: int | None = None  # writes left before the operator is killed

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.manifest.get("status", {})
        return status

    def condition(self, kind: str) -> Mapping[str, Any]:
        found = [c for c in self.status["conditions"] if c["type"] == kind]
        return found[0] if found else {}

    def view(self) -> RunView:
        needs = run_needs(self.manifest)
        trials = tuple(self._shown(trial) for trial in self.trials.values())
        return RunView(
            manifest=copy.deepcopy(self.manifest),
            tasks=self._tasks(needs.pinned),
            scripts={key: self.scripts.get(key) for key in needs.scripts},
            inventories=dict(self.inventories),
            trials=trials,
            results=self._results() if wants_results(self.manifest, trials) else None,
            settings=self.settings,
            now=self.now,
        )

    def _shown(self, trial: TrialSummary) -> TrialSummary:
        if self.waits is None or trial.phase is not TrialPhase.PENDING:
            return trial
        return replace(trial, waits_for=self.waits.value, waits_message="as they must")

    def _tasks(self, key: str) -> PinnedTasks | FoundTasks | TasksTrouble:
        if key in self.objects:
            return PinnedTasks(data=self.objects[key])
        if self.source is None:
            return TasksTrouble(
                reason=Reason.TASK_SET_NOT_FOUND, message="no object below tasksets/demo/"
            )
        return FoundTasks(files=dict(self.source))

    def _results(self) -> dict[str, TrialScore]:
        return {
            t.name: TrialScore.of(make_results(t))
            for t in self.trials.values()
            if t.phase in (TrialPhase.SUCCEEDED, TrialPhase.FAILED)
        }

    def plan(self) -> Plan:
        return plan_run(self.view())

    def step(self) -> Plan:
        """Plan once, apply it, let `wake_after` pass."""
        plan = self.plan()
        self.apply(plan)
        return plan

    def settle(self, steps: int = 200) -> None:
        """Until nothing is written any more."""
        for _ in range(steps):
            if self.deleted:
                return
            plan = self.step()
            if plan.is_idle and (plan.wake_after is None or plan.wake_after >= 2):
                return
            self.now += plan.wake_after or 0
        raise AssertionError(f"does not settle: {self.plan()}")

    def apply(self, plan: Plan) -> None:
        for action in plan.actions:
            self._spend()
            self._do(action)
        if plan.status is not None:
            self._spend()
            assert plan.status.resource_version == self.manifest["metadata"]["resourceVersion"]
            self._merge(plan.status.status)
        self.events.extend(plan.events)

    def _spend(self) -> None:
        if self.budget is not None:
            if self.budget == 0:
                raise KilledError
            self.budget -= 1

    def _do(self, action: Action) -> None:
        match action:
            case CreateTrial(manifest=manifest):
                self._create(manifest)
            case CreateNetworkPolicy(manifest=manifest):
                self.policies.setdefault(manifest["metadata"]["name"], manifest)
            case PutObject(key=key, data=data, mode="replace"):
                self.objects[key] = data
            case PutObject(key=key, data=data):
                self.objects.setdefault(key, data)
            case DeleteRun():
                self.deleted = True
            case other:
                raise AssertionError(f"a run never does this: {other}")

    def _create(self, manifest: Mapping[str, Any]) -> None:
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        assert spec["document"]["key"] in self.objects
        if name in self.trials:
            return
        self.documents[name] = manifest
        self.trials[name] = TrialSummary(
            name=name,
            uid=f"uid-{name}",
            kind=TrialKind(spec["kind"]),
            task=spec["task"]["name"],
            task_digest=spec["task"]["digest"],
            agent=spec.get("agent", ""),
            model=spec.get("model", ""),
            loop=spec.get("loopProfile", ""),
            attempt=spec.get("attempt", 1),
            generation=spec["generation"],
        )

    def _merge(self, status: Mapping[str, Any]) -> None:
        merged = {**self.status, **status}
        self.manifest["status"] = {k: v for k, v in merged.items() if v is not None}
        metadata = self.manifest["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        self.status_writes += 1

    def edit(self, **changes: Any) -> None:
        """A person changes the spec."""
        self.manifest["spec"].update(copy.deepcopy(changes))
        metadata = self.manifest["metadata"]
        metadata["generation"] += 1
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def attempts(self) -> list[TrialSummary]:
        return [t for t in self.trials.values() if t.kind is TrialKind.ATTEMPT]

    def document(self, name: str) -> TrialDocument:
        return TrialDocument.from_bytes(
            self.objects[self.documents[name]["spec"]["document"]["key"]]
        )

    def take_inventories(self, accepted: bool = True) -> None:
        """Every inventory trial succeeds."""
        for trial in list(self.trials.values()):
            if trial.kind is TrialKind.INVENTORY and trial.phase is TrialPhase.PENDING:
                self.end(trial.name)
                self.inventories[trial.task_digest] = InventoryView(
                    accepted=accepted, problems=() if accepted else ("lexer: gold fails",)
                )

    def end(self, name: str, phase: TrialPhase = TrialPhase.SUCCEEDED, **changes: Any) -> None:
        self.trials[name] = replace(self.trials[name], phase=phase, **changes)

    def end_attempts(self, phase: TrialPhase = TrialPhase.SUCCEEDED, **changes: Any) -> None:
        for trial in self.attempts():
            if trial.phase not in (
                TrialPhase.SUCCEEDED,
                TrialPhase.FAILED,
                TrialPhase.CANCELLED,
            ):
                self.end(trial.name, phase, **changes)

    def start_all(self) -> None:
        """To the point where every attempt has its Trial."""
        self.settle()
        self.take_inventories()
        self.settle()


def make_world(**spec: Any) -> World:
    """A world with one run of that spec."""
    return World(manifest=make_manifest(make_spec(**spec)))


def shown(world: World) -> tuple[str, str]:
    """Phase and finished trials of all, as `kubectl get` shows them."""
    return world.status["phase"], world.status["trialsSummary"]


def report(world: World) -> RunResults:
    return RunResults.from_bytes(world.objects[world.status["report"]])


def make_results(trial: TrialSummary) -> TrialResults:
    return TrialResults(
        kind=trial.kind,
        namespace=NAMESPACE,
        run=RUN,
        trial=trial.name,
        task=trial.task,
        task_digest=trial.task_digest,
        agent=trial.agent,
        model=trial.model,
        loop=trial.loop,
        attempt=trial.attempt,
        valid=trial.phase is TrialPhase.SUCCEEDED,
        failure_mode=FailureMode(trial.failure_mode or "none"),
        metrics=None,
        started=NOW,
        ended=NOW + 60,
    )
