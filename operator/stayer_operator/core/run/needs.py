"""What gather has to read for a run. Total: a spec that makes no sense needs nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stayer_evaluator.storage.layout import run_tasks
from stayer_operator.api.conditions import ACTIVE_TRIAL_PHASES, TERMINAL_TRIAL_PHASES
from stayer_operator.core.run.view import TrialSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Tasks:
    """Read `<prefix>/<task>.json`."""

    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMapTasks:
    """Read the keys `<task>.json` of a ConfigMap in the run's namespace."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNeeds:
    """`pinned` is tried first; `source` only where no object is there."""

    pinned: str
    source: S3Tasks | ConfigMapTasks | None
    scripts: tuple[tuple[str, str], ...]  # (ConfigMap, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIntent:
    """What a run wants of its trials, for the trial planner."""

    cancel: bool
    suspend: bool


def run_intent(manifest: Mapping[str, Any]) -> RunIntent:
    """Cancel and suspend of a run; deleting a run is a cancel (design.md §4)."""
    spec = _mapping(manifest.get("spec"))
    deleted = bool(_mapping(manifest.get("metadata")).get("deletionTimestamp"))
    return RunIntent(
        cancel=spec.get("cancel") is True or deleted, suspend=spec.get("suspend") is True
    )


def run_needs(manifest: Mapping[str, Any]) -> RunNeeds:
    """Keys and ConfigMaps that a view of this run is made from."""
    metadata, spec = _mapping(manifest.get("metadata")), _mapping(manifest.get("spec"))
    return RunNeeds(
        pinned=run_tasks(
            str(metadata.get("namespace")), str(metadata.get("name")), str(metadata.get("uid"))
        ),
        source=_source(_mapping(_mapping(spec.get("tasks")).get("source"))),
        scripts=_scripts(_mapping(spec.get("matrix")).get("agents")),
    )


def wants_results(manifest: Mapping[str, Any], trials: Iterable[TrialSummary]) -> bool:
    """Whether the run may be complete now, so that its report needs every trial's results."""
    if _mapping(manifest.get("status")).get("completionTime"):
        return False
    phases = frozenset(trial.phase for trial in trials)
    return bool(phases) and phases <= TERMINAL_TRIAL_PHASES


def wants_waits(phases: Iterable[object]) -> bool:
    """Whether the run may have to say what its trials wait for, by what their statuses say of
    their phases: where one of them holds pods it says that they run.
    """
    return not any(phase in ACTIVE_TRIAL_PHASES for phase in phases)


def _source(source: Mapping[str, Any]) -> S3Tasks | ConfigMapTasks | None:
    prefix = _mapping(source.get("s3")).get("prefix")
    name = _mapping(source.get("configMap")).get("name")
    if isinstance(prefix, str) and prefix and name is None:
        return S3Tasks(prefix=prefix.strip("/"))
    if isinstance(name, str) and name and prefix is None:
        return ConfigMapTasks(name=name)
    return None


def _scripts(agents: Any) -> tuple[tuple[str, str], ...]:
    found = set()
    for agent in agents if isinstance(agents, list) else []:
        reference = _mapping(_mapping(agent).get("scriptConfigMap"))
        name, key = reference.get("name"), reference.get("key")
        if isinstance(name, str) and isinstance(key, str):
            found.add((name, key))
    return tuple(sorted(found))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
