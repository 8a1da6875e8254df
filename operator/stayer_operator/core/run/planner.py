"""`plan_run`: one look at a run, and everything to be done about it now.

deleted        nothing: garbage collection follows the owner references
expired        delete the run
not accepted   say why; create nothing
tasks found    store the task list (once; the first list counts)
not pinned     write status.pinned; create nothing before it is there
accepted       policies, then inventories, then the attempts of tasks whose inventory is
               accepted, some at a time
ended          store the report, then say that it is complete
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from stayer_evaluator.storage.layout import run_results, run_tasks
from stayer_operator.api.conditions import Reason, RunCondition
from stayer_operator.api.names import RUN_KIND
from stayer_operator.core.plan import Action, DeleteRun, Event, Plan, PutObject, StatusWrite
from stayer_operator.core.run.assess import Assessment, assess
from stayer_operator.core.run.census import Census, take_census
from stayer_operator.core.run.expand import Expansion, attempt_trial, inventory_trial
from stayer_operator.core.run.identity import RunIdentity
from stayer_operator.core.run.networks import network_policies
from stayer_operator.core.run.report import run_report
from stayer_operator.core.run.status import (
    StatusFacts,
    build_status,
    events,
    old_condition,
    only_counts_differ,
    says_something_new,
    seconds_of,
    timestamp,
)
from stayer_operator.core.run.verdicts import Judgement, judge
from stayer_operator.core.run.view import RunView

SOON_SECONDS = 0.1  # the next batch of trials
LOOK_AGAIN_SECONDS = 2.0  # something was written that the next view will show
SAFETY_SECONDS = 60.0  # a run that has not ended is never left without a wake-up


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is to be created now. `more`: something is left for the next plan."""

    actions: tuple[Action, ...] = ()
    networked: bool = False
    more: bool = False


def plan_run(view: RunView) -> Plan:
    """Decide about one run. Pure and total."""
    run = RunIdentity.of(view.manifest)
    if run.deleting:
        return Plan()
    old: Mapping[str, Any] = view.manifest.get("status") or {}
    assessment = assess(view)
    census = take_census(view, assessment)
    work = _work(view, assessment, census, old)
    judgement = judge(
        view,
        assessment,
        census,
        networked=work.networked,
        was_complete=old_condition(old, RunCondition.COMPLETE) is not None,
    )
    expired = _expired(view, assessment, judgement, old)
    if expired is not None and expired <= 0:
        return _expire(run)
    lacks_report = judgement.is_complete and census.current and not old.get("report")
    if lacks_report and view.results is None:
        # Complete only together with the report, which needs a view with the trials' results.
        return Plan(wake_after=LOOK_AGAIN_SECONDS)
    return _finish(view, assessment, census, judgement, work, old, expired)


def _finish(
    view: RunView,
    assessment: Assessment,
    census: Census,
    judgement: Judgement,
    work: _Work,
    old: Mapping[str, Any],
    expired: float | None,
) -> Plan:
    """Add report, status and events to the work."""
    run = assessment.run
    key = run_results(run.namespace, run.name, run.uid)
    report = _report(view, assessment, census, judgement, key, old)
    has_report = bool(report) or (judgement.is_complete and bool(old.get("report")))
    facts = StatusFacts(
        started=bool(view.trials) or bool(work.actions),
        report=key if has_report else None,
        pinned=_pinned(assessment, old),
        now=view.now,
    )
    new = build_status(old, assessment, census, judgement, facts)
    status, delay = _status_write(view, run, old, new)
    return Plan(
        actions=(*work.actions, *report),
        status=status,
        events=events(old, judgement) if status is not None else (),
        wake_after=_wake(view, assessment, census, judgement, work, delay, expired),
    )


def _work(view: RunView, assessment: Assessment, census: Census, old: Mapping[str, Any]) -> _Work:
    spec, run = assessment.spec, assessment.run
    networked = old_condition(old, RunCondition.NETWORK_READY) is not None
    if spec is None or not assessment.is_sound or spec.cancel:
        return _Work(networked=networked)
    if assessment.to_pin is not None:
        key = run_tasks(run.namespace, run.name, run.uid)
        put = PutObject(key=key, data=assessment.to_pin, mode="adopt")
        return _Work(actions=(put,), networked=networked, more=True)
    if old.get("pinned") != assessment.pinned:
        return _Work(networked=networked, more=True)
    if spec.suspend or census.inventories.rejected:
        return _Work(networked=networked)
    policies = () if networked else network_policies(run, spec.network, view.settings)
    created, more = _creations(view, assessment, census)
    return _Work(actions=(*policies, *created), networked=True, more=more)


def _creations(
    view: RunView, assessment: Assessment, census: Census
) -> tuple[tuple[Action, ...], bool]:
    """A batch of new trials, inventories first, and whether more are left."""
    spec = assessment.spec
    if spec is None:
        return (), False
    expansion = Expansion(
        run=assessment.run, spec=spec, scripts=assessment.scripts, settings=view.settings
    )
    inventories = census.inventories
    new = chain(
        (inventory_trial(expansion, task, generation) for task, generation in inventories.missing),
        (
            attempt_trial(
                expansion, missing.cell, missing.attempt, missing.generation, missing.restarts
            )
            for missing in census.missing
            if missing.cell.task.digest in inventories.accepted
        ),
    )
    batch = tuple(islice(new, view.settings.trials_per_plan))
    more = next(new, None) is not None
    return tuple(action for trial in batch for action in trial.actions()), more


def _pinned(assessment: Assessment, old: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Kept as it was while the spec is not accepted: a refused change must not become the norm."""
    if assessment.is_sound and assessment.tasks_are_pinned:
        return assessment.pinned
    return old.get("pinned")


def _report(
    view: RunView,
    assessment: Assessment,
    census: Census,
    judgement: Judgement,
    key: str,
    old: Mapping[str, Any],
) -> tuple[PutObject, ...]:
    """The report, when the run has just become complete; every line of it may be new then."""
    if not judgement.is_complete or old.get("report") or assessment.spec is None:
        return ()
    if view.results is None:
        return ()
    data = run_report(assessment, assessment.spec, census, view.results)
    return (PutObject(key=key, data=data, mode="replace"),)


def _status_write(
    view: RunView, run: RunIdentity, old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[StatusWrite | None, float | None]:
    """The write, or how long it waits; neither when there is nothing new."""
    if not says_something_new(old, new):
        return None, None
    last = seconds_of(old.get("lastUpdateTime"))
    if last is not None and only_counts_differ(old, new):
        left = last + view.settings.status_seconds - view.now
        if 0 < left <= view.settings.status_seconds:
            return None, left
    write = StatusWrite(
        kind=RUN_KIND,
        namespace=run.namespace,
        name=run.name,
        uid=run.uid,
        resource_version=run.resource_version,
        status={**new, "lastUpdateTime": timestamp(view.now)},
    )
    return write, None


def _wake(
    view: RunView,
    assessment: Assessment,
    census: Census,
    judgement: Judgement,
    work: _Work,
    delay: float | None,
    expired: float | None,
) -> float | None:
    """The earliest moment at which the answer may change without anything being observed."""
    retry = assessment.tasks_fault is not None or None in view.scripts.values()
    waits = (
        (SOON_SECONDS, work.more),
        (LOOK_AGAIN_SECONDS, census.inventories.unseen),
        (view.settings.retry_seconds, retry and not judgement.is_complete),
        (SAFETY_SECONDS, not judgement.is_complete and not assessment.problems),
        (delay or 0.0, delay is not None),
        (expired or 0.0, expired is not None),
    )
    return min((seconds for seconds, applies in waits if applies), default=None)


def _expired(
    view: RunView, assessment: Assessment, judgement: Judgement, old: Mapping[str, Any]
) -> float | None:
    """Seconds until the run is deleted; None = never, or not yet known."""
    ended = seconds_of(old.get("completionTime")) if judgement.is_complete else None
    spec = assessment.spec
    if spec is None or ended is None or spec.retention.ttl_seconds_after_finished is None:
        return None
    return ended + spec.retention.ttl_seconds_after_finished - view.now


def _expire(run: RunIdentity) -> Plan:
    return Plan(
        actions=(DeleteRun(namespace=run.namespace, name=run.name, uid=run.uid),),
        events=(
            Event(
                reason=Reason.EXPIRED.value,
                message="deleted ttlSecondsAfterFinished after its end; its evidence stays",
            ),
        ),
    )
