"""Which trials count, and which of them a rerun takes; pure. `core.run.census` decides outcomes."""

from typing import Any

from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import TrialPhase
from stayer_operator.core.run.census import outcomes
from stayer_operator.core.run.view import TrialSummary

Document = dict[str, Any]


def newest_attempts(trials: list[Document]) -> list[Document]:
    """Of attempts that were run again only the newest; inventories are left out."""
    newest: dict[tuple[object, ...], Document] = {}
    for trial in sorted(_of_kind(trials, TrialKind.ATTEMPT), key=_age):
        spec = trial["spec"]
        coordinates = ("agent", "model", "loopProfile", "attempt")
        newest[spec["task"]["name"], *(spec.get(name) for name in coordinates)] = trial
    return list(newest.values())


def go_again(trials: list[Document], which: frozenset[str]) -> list[Document]:
    """Trials of an ended run that a rerun of these outcomes replaces.

    Inventories too, where they failed: a task without one keeps all its attempts waiting.
    """
    inventories = {
        trial["spec"]["task"]["digest"]: trial
        for trial in sorted(_of_kind(trials, TrialKind.INVENTORY), key=_age)
    }
    open_inventories = [t for t in inventories.values() if _phase(t) is not TrialPhase.SUCCEEDED]
    every = [*newest_attempts(trials), *open_inventories]
    return [trial for trial in every if not outcomes(_summary(trial)).isdisjoint(which)]


def _of_kind(trials: list[Document], kind: TrialKind) -> list[Document]:
    return [trial for trial in trials if trial["spec"]["kind"] == kind.value]


def _age(trial: Document) -> tuple[int, int]:
    spec = trial["spec"]
    return int(spec.get("generation", 0)), int(spec.get("restarts", 0))


def _phase(trial: Document) -> TrialPhase:
    return TrialPhase(trial.get("status", {}).get("phase") or TrialPhase.PENDING)


def _summary(trial: Document) -> TrialSummary:
    spec, status = trial["spec"], trial.get("status", {})
    return TrialSummary(
        name=trial["metadata"]["name"],
        uid=trial["metadata"]["uid"],
        kind=TrialKind(spec["kind"]),
        task=spec["task"]["name"],
        task_digest=spec["task"]["digest"],
        phase=_phase(trial),
        resolved=status.get("resolved"),
        failure_mode=status.get("failureMode") or "",
    )
