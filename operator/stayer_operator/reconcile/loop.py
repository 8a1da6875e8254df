"""The loop: keys come in, each is gathered, planned and applied; failures come back later.

    informers ──► trial_changed / pods_changed / run_changed ──► queue ──► workers
                                                                   ▲          │
                              wake_after, retries, admission ──────┴──────────┘

Admission is a key like any other: it looks at everything, and puts the Trials that it lets in into
the queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from math import floor
from typing import Literal, NamedTuple

import structlog

from stayer_evaluator.storage.store import ObjectExists, StoreError
from stayer_operator.api import names
from stayer_operator.api.conditions import TERMINAL_TRIAL_PHASES
from stayer_operator.core.observed import ObjectKey, TrialObject
from stayer_operator.core.plan import Decision, Plan
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.needs import run_intent
from stayer_operator.core.run.planner import plan_run
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.trial.planner import plan_orphans, plan_trial
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.errors import ClusterError, Conflict, NameTaken
from stayer_operator.ports import Clock, Cluster, Evidence, Observed, Subject, Telemetry
from stayer_operator.reconcile.admissions import Admissions
from stayer_operator.reconcile.apply import Applying
from stayer_operator.reconcile.gather_run import RunGathering
from stayer_operator.reconcile.gather_trial import TrialGathering, orphan_pods
from stayer_operator.reconcile.ledger import Ledger
from stayer_operator.reconcile.queue import RetryPace, WorkQueue

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPace:
    """How often what concerns many objects is looked at. Seconds; the more objects there are, the
    more a pass costs and the less often it comes, so that passes take a bounded share of the time.
    """

    admission: float = 0.05  # between two passes over all trials, at least
    run: float = 1.0  # between two passes over one run that its trials cause, at least
    admission_each: float = 0.003  # a trial; 1,000 trials: 3 s
    run_each: float = 0.005  # a trial of the run; 1,000 trials: 5 s, as often as it may write
    # Changes of trials and pods are taken together at each beat: a pair's pods come and go within
    # it, and many passes at once cost less than one by one. Who is admitted does not wait for it.
    beat: float = 0.25
    ended: float = 10.0  # from a change of an ended trial's pods to its next pass
    in_a_row: int = 8  # passes until others of the process have their turn
    workers: int = 16  # keys under way at once; they wait for the API server mostly


class Work(NamedTuple):
    """What to reconcile. Admission has the empty key."""

    kind: Literal["trial", "run", "admission"]
    key: ObjectKey


_ENDED = frozenset(phase.value for phase in TERMINAL_TRIAL_PHASES)
ADMISSION = Work("admission", ObjectKey("", ""))
# What every trial goes through, five times each: status, Events and metrics tell it.
ROUTINE = frozenset(
    {"pods_missing", "started", "progressed", "agent_ended", "result_recorded", "finished"}
)


class ReconcileLoop:
    """Everything that the operator decides and does, over its ports.

    Only the leader runs one. Nothing happens before `run` (or, step by step, `work_off`).
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        evidence: Evidence,
        observed: Observed,
        clock: Clock,
        telemetry: Telemetry,
        pod_settings: PodSettings,
        run_settings: RunSettings,
        trial_settings: TrialSettings | None = None,
        pace: LoopPace | None = None,
        retry_pace: RetryPace | None = None,
    ) -> None:
        self._observed = observed
        self._clock = clock
        self._telemetry = telemetry
        self._settings = trial_settings or TrialSettings()
        self._pace = pace or LoopPace()
        self._queue: WorkQueue[Work] = WorkQueue(retry_pace)
        self._ledger = Ledger()
        self._uids: dict[ObjectKey, str] = {}
        self._heard: dict[ObjectKey, tuple[str, int, bool]] = {}
        self._last: dict[Work, float] = {}
        self._sizes: dict[ObjectKey, int] = {}  # trials of a run, at its last pass
        self._news = asyncio.Event()
        self._admissions = Admissions(observed, self._ledger)
        self._applying = Applying(
            cluster=cluster,
            evidence=evidence,
            clock=clock,
            telemetry=telemetry,
            ledger=self._ledger,
        )
        self._trials = TrialGathering(
            observed=observed,
            evidence=evidence,
            telemetry=telemetry,
            ledger=self._ledger,
            pod_settings=pod_settings,
            settings=self._settings,
        )
        self._runs = RunGathering(
            observed=observed,
            cluster=cluster,
            evidence=evidence,
            telemetry=telemetry,
            ledger=self._ledger,
            admissions=self._admissions,
            settings=run_settings,
        )

    def trial_changed(self, key: ObjectKey) -> None:
        """A Trial was made, changed or deleted."""
        trial = self._observed.trial(key)
        if trial is None or not self._is_new(trial):
            self._add_soon(Work("trial", key))
        self._consider(key)
        if trial is not None:
            self._add_spaced(Work("run", trial.run_key), self._run_pause(trial.run_key))

    def _is_new(self, trial: TrialObject) -> bool:
        """Nothing was ever written about it, and its run wants it: admission looks at it, and
        brings it up when its turn comes.
        """
        if trial.status or trial.deleted:
            return False
        run = self._observed.run(trial.run_key)
        return run is not None and run.uid == trial.run_uid and not run_intent(run.manifest).cancel

    def pods_changed(self, trial: ObjectKey) -> None:
        """A pod of that Trial was made, changed or deleted. Those of an ended one were told to go
        and go one by one: one look at several is enough.
        """
        held = self._observed.trial(trial)
        if held is not None and held.status.get("phase") in _ENDED:
            self._add_at(Work("trial", trial), self._clock.now() + self._pace.ended)
            return
        self._add_soon(Work("trial", trial))
        self._consider(trial)

    def run_changed(self, key: ObjectKey) -> None:
        """A run was made, changed or deleted. Its trials hear of it when its intent for them is a
        new one, not at every write of its status.
        """
        self._add(Work("run", key))
        run = self._observed.run(key)
        heard = (run.uid, run.generation, run.deleted) if run is not None else None
        if self._heard.get(key) == heard:
            return
        self._add_spaced(ADMISSION, self._admission_pause)
        if run is None or heard is None:
            self._heard.pop(key, None)
            return
        self._heard[key] = heard
        for trial in self._observed.trials_of_run(run.uid):
            self._add(Work("trial", trial.key))

    def progress_reported(self, trial: ObjectKey) -> None:
        """A sidecar told something; it is folded into the status when its minute has come."""
        self._add(Work("trial", trial))

    def add_all(self) -> None:
        """Look at everything that is observed; once, after the first LIST."""
        for run in self._observed.runs():
            self._add(Work("run", run.key))
        for trial in self._observed.trials():
            self._add(Work("trial", trial.key))
        self._admissions.look_at_all()
        self._add(ADMISSION)

    async def run(self) -> None:
        """Work until cancelled."""
        self.add_all()
        slots = asyncio.Semaphore(self._pace.workers)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await slots.acquire()
                work = await self._next()
                task = tasks.create_task(self._work_from(work))
                task.add_done_callback(lambda _: slots.release())

    async def _work_from(self, work: Work) -> None:
        """This key and some of those that are ready then: most passes only look, and to begin a
        task costs as much as such a pass.
        """
        for _ in range(self._pace.in_a_row - 1):
            await self._process(work)
            following = self._queue.take(self._clock.now())
            if following is None:
                return
            work = following
        await self._process(work)

    async def work_off(self) -> int:
        """Do what may be done now, one key after the other; the number of keys worked on. For
        programs that move the clock themselves.
        """
        worked = 0
        while (work := self._queue.take(self._clock.now())) is not None:
            await self._process(work)
            worked += 1
        return worked

    def next_time(self) -> float | None:
        """When the next key comes up by itself."""
        return self._queue.next_time()

    async def _next(self) -> Work:
        """The next key, awaited until news or a timer bring one."""
        while (work := self._queue.take(self._clock.now())) is None:
            self._news.clear()
            due = self._queue.next_time()
            seconds = None if due is None else max(0.0, due - self._clock.now())
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()
        self._telemetry.queue_depth(len(self._queue))
        return work

    async def _process(self, work: Work) -> None:
        """One pass over one key. Whatever goes wrong, the key comes back and the loop goes on."""
        began = time.perf_counter()
        try:
            decision = await self._reconcile(work)
        except (Conflict, ObjectExists, NameTaken) as error:
            # Somebody was faster, or something has to go first: look again.
            outcome = "retry"
            wait = self._queue.retry(work, self._clock.now())
            log.debug("looking again", work=work.kind, key=work.key, error=str(error), wait=wait)
        except (ClusterError, StoreError) as error:
            outcome = "retry"
            wait = self._queue.retry(work, self._clock.now())
            log.warning("trying again", work=work.kind, key=work.key, error=str(error), wait=wait)
        except Exception:
            outcome = "error"
            wait = self._queue.retry(work, self._clock.now())
            log.exception("unexpected", work=work.kind, key=work.key, wait=wait)
        else:
            outcome = "ok"
            self._queue.succeeded(work)
            self._follow_up(work, decision)
        finally:
            self._queue.done(work)
            if work.kind == "trial":
                self._admissions.look_again(work.key)  # it may have noted POSTs and pods
            self._news.set()  # it may be ready again, and its retry may be the first timer now
        self._telemetry.reconciled(work.kind, time.perf_counter() - began, outcome)

    async def _reconcile(self, work: Work) -> Decision | None:
        match work.kind:
            case "trial":
                return await self._reconcile_trial(work.key)
            case "run":
                return await self._reconcile_run(work.key)
            case "admission":
                return self._admit()

    async def _reconcile_trial(self, key: ObjectKey) -> Decision | None:
        trial = self._observed.trial(key)
        self._note_uid(key, trial.uid if trial is not None else None)
        now = self._clock.now()
        if trial is None:
            decision = plan_orphans(orphan_pods(self._observed, key), now, self._settings)
            subject = Subject(kind=names.TRIAL_KIND, namespace=key.namespace, name=key.name, uid="")
        else:
            view = await self._trials.gather(trial, self._admissions.is_admitted(key), now)
            decision = plan_trial(view)
            subject = Subject(
                kind=names.TRIAL_KIND, namespace=key.namespace, name=key.name, uid=trial.uid
            )
            if view.is_terminal and not view.pods:
                self._ledger.close(trial.uid)
        await self._carry_out(decision, subject)
        return decision

    async def _reconcile_run(self, key: ObjectKey) -> Decision | None:
        run = self._observed.run(key)
        self._last[Work("run", key)] = self._clock.now()
        if run is None:
            self._last.pop(Work("run", key), None)
            self._sizes.pop(key, None)
            self._runs.forget(key)
            return None
        view = await self._runs.gather(run, self._clock.now())
        self._sizes[key] = len(view.trials)
        decision = Decision(rule="plan_run", plan=plan_run(view))
        subject = Subject(kind=names.RUN_KIND, namespace=key.namespace, name=key.name, uid=run.uid)
        await self._carry_out(decision, subject)
        return decision

    def _admit(self) -> Decision:
        self._last[ADMISSION] = self._clock.now()
        fresh, wake_after = self._admissions.decide(self._clock.now())
        for key in fresh:
            self._add(Work("trial", key))
        return Decision(rule="admit", plan=Plan(wake_after=wake_after))

    async def _carry_out(self, decision: Decision, subject: Subject) -> None:
        if decision.plan.is_idle:
            return
        await self._applying.apply(decision.plan, subject)
        self._telemetry.rule_applied(subject.kind, decision.rule)
        tell = log.debug if decision.rule in ROUTINE else log.info
        tell(
            "applied",
            kind=subject.kind,
            namespace=subject.namespace,
            name=subject.name,
            rule=decision.rule,
            actions=dict(Counter(type(action).__name__ for action in decision.plan.actions)),
            status=decision.plan.status is not None,
        )

    def _follow_up(self, work: Work, decision: Decision | None) -> None:
        if decision is None or decision.plan.wake_after is None:
            return
        self._add_at(work, self._clock.now() + decision.plan.wake_after)

    def _note_uid(self, key: ObjectKey, uid: str | None) -> None:
        """Forget what was noted about a Trial that is gone or replaced by one of its name."""
        old = self._uids.get(key)
        if old is not None and old != uid:
            self._ledger.forget(old)
            del self._uids[key]
        if uid is not None:
            self._uids[key] = uid

    def _add(self, work: Work) -> None:
        self._queue.add(work)
        self._news.set()

    def _add_at(self, work: Work, when: float) -> None:
        self._queue.add_at(work, when)
        self._news.set()

    def _add_soon(self, work: Work) -> None:
        """At the next beat; at once without one."""
        beat = self._pace.beat
        if beat > 0:
            self._add_at(work, (floor(self._clock.now() / beat) + 1) * beat)
        else:
            self._add(work)

    def _consider(self, trial: ObjectKey) -> None:
        """Admission is to look at this Trial, soon."""
        self._admissions.look_again(trial)
        self._add_spaced(ADMISSION, self._admission_pause)

    @property
    def _admission_pause(self) -> float:
        return max(self._pace.admission, self._admissions.size * self._pace.admission_each)

    def _run_pause(self, run: ObjectKey) -> float:
        return max(self._pace.run, self._sizes.get(run, 0) * self._pace.run_each)

    def _add_spaced(self, work: Work, seconds: float) -> None:
        """At once when it was last done `seconds` ago, else when that time has passed."""
        last = self._last.get(work)
        if last is None or self._clock.now() - last >= seconds:
            self._add(work)
        else:
            self._add_at(work, last + seconds)
