"""From manifests and API objects to rows; pure but for reading the named file."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from stayer_evaluator.records.queue import SnapshotEntry
from stayer_evaluator.records.results import TrialResults
from stayer_evaluator.records.verdict import Verdict
from stayer_operator.api import names
from stayer_operator.api.wording import counted
from stayer_operator.cli.errors import CliError

Document = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TERMINAL = frozenset({"Succeeded", "Failed", "Cancelled"})


SNAPSHOT_COLUMNS = (
    "SNAPSHOT", "TIME", "ROUND", "STEP", "FILES", "BYTES", "IMPLEMENTED", "ADJUDICATED", "CLEARED",
    "REGRESSIONS", "RECOVERIES", "PROBLEMS",
)  # fmt: skip


class Outcome(StrEnum):
    """What `rerun --which` takes."""

    INFRA_ERROR = "infra_error"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNRESOLVED = "unresolved"


def read_run(path: Path) -> Document:
    """The one BenchmarkRun of a manifest file. Raises CliError: the file and what is wrong."""
    try:
        documents = [d for d in yaml.safe_load_all(path.read_text()) if d is not None]
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: not YAML: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        found = counted(len(documents), "document")
        raise CliError(f"{path}: found {found}, accepted: one {names.RUN_KIND}")
    document: Document = documents[0]
    found = f"{document.get('apiVersion')} {document.get('kind')}"
    if found != f"{names.API_VERSION} {names.RUN_KIND}":
        raise CliError(f"{path}: found {found}, accepted: {names.API_VERSION} {names.RUN_KIND}")
    if not isinstance(document.get("metadata"), dict) or not document["metadata"].get("name"):
        raise CliError(f"{path}: metadata.name is missing")
    if not isinstance(name := document["metadata"]["name"], str):
        raise CliError(f"{path}: metadata.name: found {name}, accepted: text; put it in quotes")
    return document


def age(timestamp: str | None, now: float) -> str:
    """Time since an API timestamp as kubectl writes it: 45s, 12m, 3h, 4d."""
    if not timestamp:
        return "-"
    seconds = max(0, int(now - datetime.fromisoformat(timestamp).timestamp()))
    for limit, unit, divisor in ((120, "s", 1), (7200, "m", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds // divisor}{unit}"
    return f"{seconds // 86400}d"


def run_row(run: Document, now: float) -> tuple[object, ...]:
    """A run as `stayer run list` shows it."""
    status = run.get("status", {})
    trials = status.get("trials", {})
    done = sum(trials.get(phase, 0) for phase in ("succeeded", "failed", "cancelled"))
    return (
        run["metadata"]["name"],
        run["spec"].get("benchmark"),
        status.get("phase", "Pending"),
        f"{done}/{trials.get('total', 0)}",
        running(trials),
        status.get("resolvedRate"),
        status.get("regressions", 0),
        age(run["metadata"].get("creationTimestamp"), now),
    )


def without_bookkeeping(document: Document) -> Document:
    """An object without what only the API server and kubectl apply keep in it."""
    metadata = {k: v for k, v in document["metadata"].items() if k != "managedFields"}
    kept = {k: v for k, v in metadata.get("annotations", {}).items() if k != LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = kept
    if not kept:
        metadata.pop("annotations", None)
    return {**document, "metadata": metadata}


def running(trials: Document) -> int:
    """Trials that hold pods now."""
    return int(trials.get("active", 0))


def phase(run: Document) -> str:
    """Where a run stands, as its status says."""
    return str(run.get("status", {}).get("phase", "Pending"))


def has_ended(run: Document) -> bool:
    """Whether nothing more happens unless the run is changed.

    A run that is refused is Failed without being complete: it goes on once its spec is mended. The
    status of a run that was just changed speaks of the run before.
    """
    status = run.get("status", {})
    complete = any(
        condition["type"] == "Complete" and condition["status"] == "True"
        for condition in status.get("conditions", [])
    )
    seen = status.get("observedGeneration", 0) >= run["metadata"].get("generation", 0)
    return complete and seen and phase(run) in TERMINAL


def waiting_reason(run: Document) -> str:
    """Why nothing moves, in the words of the run's conditions; empty when something does."""
    for condition in run.get("status", {}).get("conditions", []):
        kind, value = condition["type"], condition["status"]
        if kind in {"Accepted", "TasksReady", "NetworkReady", "Progressing"} and value != "True":
            return f"{kind}={value} {condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def snapshot_document(entry: SnapshotEntry, verdict: Verdict | None) -> Document:
    """A snapshot for programs; `time` in seconds since 1970. Lists are empty without a verdict."""
    return {
        "snapshot": entry.snapshot,
        "time": round(entry.time, 1),
        "round": entry.episode.round,
        "step": entry.episode.step,
        "files": entry.files,
        "bytes": entry.bytes,
        "implemented": len(entry.implemented),
        "adjudicated": verdict is not None,
        "cleared": list(verdict.cleared) if verdict else [],
        "regressions": list(verdict.regressions) if verdict else [],
        "recoveries": list(verdict.recoveries) if verdict else [],
        "problems": [report.model_dump(mode="json") for report in entry.reports],
    }


def snapshot_rows(snapshots: list[Document]) -> list[tuple[object, ...]]:
    """A row for each, for people; times count from the trial's first snapshot."""
    start = snapshots[0]["time"] if snapshots else 0.0
    shown = (
        {
            **found,
            "time": f"{found['time'] - start:.1f} s",
            "problems": len(found["problems"]) or "",
        }
        for found in snapshots
    )
    return [
        tuple(" ".join(v) if isinstance(v, list) else v for v in found.values()) for found in shown
    ]


def trial_rows(trial: Document, results: TrialResults | None) -> list[tuple[str, object]]:
    """A trial as `stayer trial show` shows it: field, value."""
    spec, status = trial["spec"], trial.get("status", {})
    rows: list[tuple[str, object]] = [
        ("name", trial["metadata"]["name"]),
        ("run", spec["runName"]),
        ("kind", spec["kind"]),
        ("task", spec["task"]["name"]),
        ("agent", spec.get("agent")),
        ("model", spec.get("model")),
        ("loop profile", spec.get("loopProfile")),
        ("attempt", spec.get("attempt")),
        ("phase", status.get("phase", "Pending")),
        ("message", status.get("message")),
        ("agent pod", status.get("agentPod")),
        ("adjudicator pod", status.get("adjudicatorPod")),
        ("infrastructure restarts", status.get("infraRestarts", 0)),
        ("evidence", spec["prefix"]),
    ]
    if results is None:
        return rows
    rows.append(("failure mode", results.failure_mode.value))
    metrics = {} if results.metrics is None else results.metrics.model_dump(mode="json")
    shown = ((key, ", ".join(v) if isinstance(v, list) else v) for key, v in metrics.items())
    return rows + [(key.replace("_", " "), value) for key, value in shown]
