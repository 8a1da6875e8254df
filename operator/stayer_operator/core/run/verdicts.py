"""Conditions and phase of a run from what was assessed and counted."""

from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass

from stayer_operator.api.conditions import (
    TERMINAL_TRIAL_PHASES,
    Reason,
    RunCondition,
    RunPhase,
    TrialPhase,
)
from stayer_operator.api.wording import counted
from stayer_operator.core.run.assess import Assessment
from stayer_operator.core.run.census import Census
from stayer_operator.core.run.problems import summary
from stayer_operator.core.run.view import RunView

LISTED = 5
_REASONS = {reason.value: reason for reason in Reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One condition without its times. status None = Unknown."""

    type: RunCondition
    status: bool | None
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All conditions of a run, and the phase that follows from them."""

    accepted: Verdict
    tasks_ready: Verdict
    network_ready: Verdict | None
    progressing: Verdict
    complete: Verdict | None
    phase: RunPhase

    def verdicts(self) -> tuple[Verdict, ...]:
        """In the order in which they stand in the status."""
        every = (
            self.accepted,
            self.tasks_ready,
            self.network_ready,
            self.progressing,
            self.complete,
        )
        return tuple(verdict for verdict in every if verdict is not None)

    @property
    def is_complete(self) -> bool:
        return self.complete is not None and self.complete.status is True


def judge(
    view: RunView, assessment: Assessment, census: Census, *, networked: bool, was_complete: bool
) -> Judgement:
    """`networked`: the policies exist once this plan is done. `was_complete`: the status has the
    condition Complete.
    """
    accepted = _accepted(assessment)
    tasks_ready = _tasks_ready(assessment, census)
    complete = _complete(assessment, census, was_complete=was_complete)
    progressing = _progressing(view, assessment, census, tasks_ready, complete)
    return Judgement(
        accepted=accepted,
        tasks_ready=tasks_ready,
        network_ready=_network_ready() if networked else None,
        progressing=progressing,
        complete=complete,
        phase=_phase(assessment, census, complete),
    )


def _accepted(assessment: Assessment) -> Verdict:
    kind = RunCondition.ACCEPTED
    if not assessment.problems:
        message = "the spec is sound"
        return Verdict(type=kind, status=True, reason=Reason.SPEC_ACCEPTED, message=message)
    reason = Reason.SPEC_INVALID
    if assessment.unenforceable:
        reason = Reason.USER_NAMESPACE_NOT_ENFORCED
    elif assessment.immutable:
        reason = Reason.IMMUTABLE_FIELD_CHANGED
    return Verdict(type=kind, status=False, reason=reason, message=summary(assessment.problems))


def _tasks_ready(assessment: Assessment, census: Census) -> Verdict:
    fault, found = assessment.tasks_fault, census.inventories
    if fault is not None:
        return _tasks(False, fault.reason, fault.message)
    if assessment.problems:
        return _tasks(None, Reason.WAITING_FOR_SPEC, "the spec is not accepted")
    if found.rejected:
        lines = (f"{task}: {', '.join(why[:LISTED])}" for task, why in found.rejected[:LISTED])
        tasks = counted(len(found.rejected), "task")
        message = f"the gold solution of {tasks} fails: {'; '.join(lines)}"
        return _tasks(False, Reason.TASK_REJECTED, message)
    if found.failed:
        lines = (f"{task}: {why or 'no result'}" for task, why in found.failed[:LISTED])
        message = (
            f"{_inventories(found.failed)} could not be taken: {'; '.join(lines)}; raise "
            "spec.rerun.generation to try again"
        )
        return _tasks(False, Reason.INVENTORY_FAILED, message)
    if found.pending:
        message = f"{_inventories(found.pending)} still to be taken: {_some(found.pending)}"
        return _tasks(False, Reason.INVENTORY_PENDING, message)
    return _tasks(True, Reason.TASKS_FOUND, counted(len(assessment.tasks), "task"))


def _inventories(tasks: Sized) -> str:
    return counted(len(tasks), "inventory", "inventories")


def _tasks(status: bool | None, reason: Reason, message: str) -> Verdict:
    return Verdict(type=RunCondition.TASKS_READY, status=status, reason=reason, message=message)


def _network_ready() -> Verdict:
    return Verdict(
        type=RunCondition.NETWORK_READY,
        status=True,
        reason=Reason.POLICIES_CREATED,
        message="a NetworkPolicy for each role",
    )


def _complete(assessment: Assessment, census: Census, *, was_complete: bool) -> Verdict | None:
    ended = _end_reason(assessment, census)
    if ended is not None:
        reason, message = ended
        return Verdict(type=RunCondition.COMPLETE, status=True, reason=reason, message=message)
    if was_complete:
        message = "trials were added or are run again"
        return Verdict(
            type=RunCondition.COMPLETE, status=False, reason=Reason.RERUN, message=message
        )
    return None


def _end_reason(assessment: Assessment, census: Census) -> tuple[Reason, str] | None:
    """Why the run has ended; None while something is left to do."""
    spec, found = assessment.spec, census.inventories
    if census.has_unfinished:
        return None
    if spec is not None and spec.cancel and not _ended_by_itself(assessment, census):
        return Reason.CANCELLED, "spec.cancel is true and no trial is left"
    if not assessment.is_sound or assessment.to_pin is not None:
        return None
    if found.rejected:
        return Reason.TASK_REJECTED, "a task was rejected, see the condition TasksReady"
    if found.failed and not found.missing and not found.unseen and not _creatable(census):
        return Reason.INVENTORY_FAILED, "an inventory failed, see the condition TasksReady"
    if census.missing or found.pending:
        return None
    if not census.phases.get(TrialPhase.SUCCEEDED):
        return Reason.TRIALS_FAILED, f"{counted(census.planned, 'trial')} ended, no valid result"
    return Reason.TRIALS_FINISHED, f"{counted(census.planned, 'trial')} ended"


def _ended_by_itself(assessment: Assessment, census: Census) -> bool:
    """Every attempt had ended before anybody cancelled: the run keeps the end that it had."""
    left = census.missing or census.inventories.pending or census.phases.get(TrialPhase.CANCELLED)
    return assessment.is_sound and assessment.to_pin is None and not left


def _creatable(census: Census) -> bool:
    return any(m.cell.task.digest in census.inventories.accepted for m in census.missing)


def _progressing(
    view: RunView,
    assessment: Assessment,
    census: Census,
    tasks_ready: Verdict,
    complete: Verdict | None,
) -> Verdict:
    spec = assessment.spec
    if complete is not None and complete.status:
        return _progress(False, complete.reason, complete.message)
    if spec is not None and spec.cancel:
        return _progress(True, Reason.CANCELLING, "trials are being ended")
    if census.has_active:
        return _progress(True, Reason.TRIALS_RUNNING, _counts(census))
    if assessment.problems:
        return _progress(False, Reason.WAITING_FOR_SPEC, "waits for a spec that is accepted")
    if spec is not None and spec.suspend:
        return _progress(False, Reason.SUSPENDED, "spec.suspend is true")
    waits = _waits(view)
    if waits is not None:
        return waits
    if tasks_ready.status is not True:
        return _progress(False, tasks_ready.reason, f"waits for tasks: {tasks_ready.message}")
    missing = counted(len(census.missing), "trial")
    return _progress(True, Reason.CREATING_TRIALS, f"{missing} to create")


def _progress(status: bool, reason: Reason, message: str) -> Verdict:
    return Verdict(type=RunCondition.PROGRESSING, status=status, reason=reason, message=message)


def _counts(census: Census) -> str:
    phases = (TrialPhase.ADMITTED, TrialPhase.RUNNING, TrialPhase.DRAINING)
    parts = [f"{census.phases[p]} {p.value.lower()}" for p in phases if census.phases.get(p)]
    return ", ".join(parts) if parts else "inventories are being taken"


def _waits(view: RunView) -> Verdict | None:
    """What most of the waiting trials wait for."""
    waiting = [t for t in view.trials if t.phase not in TERMINAL_TRIAL_PHASES and t.waits_for]
    if not waiting:
        return None
    reason, count = Counter(t.waits_for for t in waiting).most_common(1)[0]
    message = next(t.waits_message for t in waiting if t.waits_for == reason)
    return _progress(
        False,
        _REASONS.get(reason, Reason.UNSCHEDULABLE),
        f"{counted(count, 'trial')} waiting: {message}",
    )


def _phase(assessment: Assessment, census: Census, complete: Verdict | None) -> RunPhase:
    if complete is not None and complete.status:
        return _END_PHASES[complete.reason]
    spec = assessment.spec
    if census.has_active:
        return RunPhase.RUNNING
    if assessment.problems and not _waits_for_script(assessment):
        return RunPhase.FAILED
    if spec is not None and spec.suspend and not spec.cancel:
        return RunPhase.SUSPENDED
    started = any(census.phases.get(phase) for phase in TERMINAL_TRIAL_PHASES)
    return RunPhase.RUNNING if started else RunPhase.PENDING


_END_PHASES = {
    Reason.CANCELLED: RunPhase.CANCELLED,
    Reason.TASK_REJECTED: RunPhase.FAILED,
    Reason.INVENTORY_FAILED: RunPhase.FAILED,
    Reason.TRIALS_FAILED: RunPhase.FAILED,
    Reason.TRIALS_FINISHED: RunPhase.SUCCEEDED,
}


def _waits_for_script(assessment: Assessment) -> bool:
    """Only ConfigMaps are missing, which may yet be applied."""
    return all(
        problem.field.endswith(".scriptConfigMap") and problem.found == "nothing"
        for problem in assessment.problems
    )


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
