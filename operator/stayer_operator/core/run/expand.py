"""One attempt or inventory -> its document and its Trial. Pure: equal input, equal bytes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.run import RunTask
from stayer_evaluator.records.trial import (
    AgentSettings,
    LoopProfile,
    SnapshotSettings,
    TaskReference,
    TrialDocument,
)
from stayer_evaluator.storage.layout import TrialKeys, trial_prefix
from stayer_operator.api import names
from stayer_operator.api.matrix import Agent, LoopProfileSpec
from stayer_operator.api.run import RunSpec
from stayer_operator.core.plan import Action, CreateTrial, PutObject
from stayer_operator.core.run.cells import Cell
from stayer_operator.core.run.identity import RunIdentity
from stayer_operator.core.run.scripts import gold_units
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.timeouts import resolve_timeouts

NO_MODEL = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What trials of a run are made from. `scripts`: text by agent name."""

    run: RunIdentity
    spec: RunSpec
    scripts: Mapping[str, str]
    settings: RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTrial:
    """A Trial to be created."""

    name: str
    key: str
    document: bytes
    manifest: Mapping[str, Any]

    def actions(self) -> tuple[Action, ...]:
        """The document first, so that no Trial exists without it. Replaced, not created: as long
        as the Trial does not exist nobody has read it, and another version of this operator may
        have left other bytes there just before it ended.
        """
        return (
            PutObject(key=self.key, data=self.document, mode="replace"),
            CreateTrial(manifest=self.manifest),
        )


def attempt_trial(
    expansion: Expansion, cell: Cell, attempt: int, generation: int, restarts: int = 0
) -> NewTrial:
    """The Trial of one attempt."""
    run = expansion.run
    name = names.attempt_trial_name(
        run=run.name,
        run_uid=run.uid,
        task=cell.task.name,
        task_digest=cell.task.digest,
        agent=cell.agent.name,
        model=cell.model,
        loop=cell.loop.name,
        attempt=attempt,
        generation=generation,
        restarts=restarts,
    )
    document = _document(expansion, name, TrialKind.ATTEMPT, cell.task).model_copy(
        update={
            "agent": _agent(cell.agent, expansion.scripts.get(cell.agent.name)),
            "model": None if cell.model == NO_MODEL else cell.model,
            "loop": _loop(cell.loop),
            "attempt": attempt,
            "grants": _grants(expansion, cell.agent),
        }
    )
    coordinates = {
        "agent": cell.agent.name,
        "harness": cell.agent.harness,
        "model": cell.model,
        "loopProfile": cell.loop.name,
        "attempt": attempt,
        "restarts": restarts,
    }
    return _new_trial(expansion, document, cell.task, generation, coordinates)


def inventory_trial(expansion: Expansion, task: RunTask, generation: int) -> NewTrial:
    """The Trial that takes a task's inventory."""
    run = expansion.run
    name = names.inventory_trial_name(
        run=run.name, run_uid=run.uid, task_digest=task.digest, generation=generation
    )
    document = _document(expansion, name, TrialKind.INVENTORY, task)
    return _new_trial(expansion, document, task, generation, {})


def _document(expansion: Expansion, name: str, kind: TrialKind, task: RunTask) -> TrialDocument:
    run, spec = expansion.run, expansion.spec
    return TrialDocument(
        kind=kind,
        namespace=run.namespace,
        run=run.name,
        run_uid=run.uid,
        trial=name,
        prefix=trial_prefix(run.namespace, run.name, run.uid, name),
        benchmark=spec.benchmark,
        task=TaskReference(name=task.name, digest=task.digest, image=task.image),
        timeouts=resolve_timeouts(spec.timeouts, task),
        snapshots=SnapshotSettings(**spec.snapshots.model_dump()),
        test_visibility=spec.test_visibility,
        network=spec.network,
        user_namespaces=spec.user_namespaces,
        versions=dict(expansion.settings.versions),
    )


def _agent(agent: Agent, script: str | None) -> AgentSettings:
    return AgentSettings(
        name=agent.name,
        harness=agent.harness,
        script=script,
        env={variable.name: variable.value for variable in agent.env},
    )


def _loop(profile: LoopProfileSpec) -> LoopProfile:
    return LoopProfile(**profile.model_dump())


def _grants(expansion: Expansion, agent: Agent) -> tuple[str, ...]:
    """Gold only where the harness works by applying it."""
    gold = expansion.settings.harnesses[agent.harness].gold
    if gold == "by-script":
        script = expansion.scripts.get(agent.name)
        return ("gold",) if script and gold_units(script) else ()
    return ("gold",) if gold == "always" else ()


def _new_trial(
    expansion: Expansion,
    document: TrialDocument,
    task: RunTask,
    generation: int,
    coordinates: Mapping[str, Any],
) -> NewTrial:
    data = document.to_bytes()
    key = TrialKeys(document.prefix).document
    run, spec = expansion.run, expansion.spec
    manifest = {
        "apiVersion": names.API_VERSION,
        "kind": names.TRIAL_KIND,
        "metadata": {
            "name": document.trial,
            "namespace": run.namespace,
            "labels": names.trial_labels(run=run.name, run_uid=run.uid, kind=document.kind),
            "ownerReferences": [names.owner_reference(names.RUN_KIND, run.name, run.uid)],
        },
        "spec": {
            "kind": document.kind.value,
            "runName": run.name,
            "runUID": run.uid,
            "task": document.task.model_dump(),
            **coordinates,
            "generation": generation,
            "document": {"key": key, "sha256": hashlib.sha256(data).hexdigest()},
            "prefix": document.prefix,
            "priority": spec.priority,
            "expectedSeconds": _expected(document, task),
            "timeouts": {
                "agentSeconds": document.timeouts.agent_seconds,
                "testSeconds": document.timeouts.test_seconds,
                "drainSeconds": document.timeouts.drain_seconds,
            },
            "onAgentLoss": spec.on_agent_loss,
            "infraRetries": spec.infra_retries,
            "network": spec.network,
            "userNamespaces": spec.user_namespaces,
            "testVisibility": spec.test_visibility,
            "grants": list(document.grants),
            "images": _plain(spec.images),
            "podTemplates": _plain(spec.pod_templates),
        },
    }
    return NewTrial(name=document.trial, key=key, document=data, manifest=manifest)


def _expected(document: TrialDocument, task: RunTask) -> int:
    """The task's own estimate, else the agent's time limit; the longest starts first."""
    limit = document.timeouts.agent_seconds
    estimate = task.estimated_duration_sec
    return limit if estimate is None else min(limit, max(1, round(estimate)))


def _plain(model: Any) -> dict[str, Any]:
    """A part of the run's spec as it stands in the API, without what is not set."""
    dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped
