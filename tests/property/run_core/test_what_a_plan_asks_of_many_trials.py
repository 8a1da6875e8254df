"""The census of a run, said once more in the simplest words, and what need not be gathered."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from makers_run import NOW, make_manifest, make_record, make_spec, make_task
from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.run import RunTasks
from stayer_operator.api.conditions import (
    ACTIVE_TRIAL_PHASES,
    TERMINAL_TRIAL_PHASES,
    TrialPhase,
)
from stayer_operator.api.wording import counted
from stayer_operator.core.run.assess import assess, attempt_key
from stayer_operator.core.run.census import outcomes, take_census
from stayer_operator.core.run.needs import wants_results, wants_waits
from stayer_operator.core.run.planner import plan_run
from stayer_operator.core.run.settings import RunSettings
from stayer_operator.core.run.view import InventoryView, PinnedTasks, RunView, TrialSummary

TASKS = (make_task("ledger"), make_task("parser"))
DIGESTS = {name: make_record(name).digest for name in ("ledger", "parser", "gone")}
PINNED = RunTasks(tasks=TASKS).to_bytes()
SETTINGS = RunSettings()


@st.composite
def trials(draw: st.DrawFn) -> tuple[TrialSummary, ...]:
    made = []
    for index in range(draw(st.integers(0, 12))):
        task = draw(st.sampled_from(("ledger", "parser", "parser", "gone")))
        phase = draw(st.sampled_from(TrialPhase))
        inventory = draw(st.integers(0, 4)) == 0
        made.append(
            TrialSummary(
                name=f"t{index:02d}",
                uid=f"uid-{index}",
                kind=TrialKind.INVENTORY if inventory else TrialKind.ATTEMPT,
                task=task,
                task_digest=DIGESTS[task],
                agent="oracle",
                model="none",
                loop="outer-loop",
                attempt=draw(st.integers(1, 3)),
                generation=draw(st.integers(0, 2)),
                restarts=draw(st.integers(0, 1)),
                begins_again=draw(st.integers(0, 5)) == 0,
                phase=phase,
                resolved=draw(st.sampled_from((None, True, False))),
                regressions=draw(st.integers(0, 2)),
                waits_for=draw(st.sampled_from(("", "RunParallelism"))),
                waits_message="as they must",
            )
        )
    return tuple(draw(st.permutations(made)))


@st.composite
def views(draw: st.DrawFn) -> RunView:
    spec = make_spec(
        attempts=draw(st.integers(1, 3)),
        suspend=draw(st.booleans()),
        cancel=draw(st.integers(0, 4)) == 0,
        rerun={"generation": draw(st.integers(0, 2)), "which": ["infra_error", "unresolved"]},
    )
    known = draw(st.sets(st.sampled_from(TASKS)))
    view = RunView(
        manifest=make_manifest(spec),
        tasks=PinnedTasks(data=PINNED),
        inventories={task.digest: InventoryView(accepted=draw(st.booleans())) for task in known},
        trials=draw(trials()),
        settings=SETTINGS,
        now=NOW,
    )
    pinned = dict(assess(replace(view, trials=())).pinned)
    return replace(view, manifest={**view.manifest, "status": {"pinned": pinned}})


@given(views())
def test_the_newest_trial_of_each_attempt_counts(view: RunView):
    attempts = [trial for trial in view.trials if trial.kind is TrialKind.ATTEMPT]
    newest = {
        attempt_key(trial): trial
        for trial in sorted(attempts, key=lambda t: (t.generation, t.restarts, t.name))
    }
    census = take_census(view, assess(view))
    assert sorted(t.name for t in census.current) == sorted(t.name for t in newest.values())
    assert all(
        count == sum(t.phase is phase for t in newest.values())
        for phase, count in census.phases.items()
    )
    assert census.has_active == any(t.phase in ACTIVE_TRIAL_PHASES for t in view.trials)
    assert census.has_unfinished == any(t.phase not in TERMINAL_TRIAL_PHASES for t in view.trials)


@given(views())
def test_what_is_missing_is_what_was_asked_for_without_what_is_there(view: RunView):
    assessment = assess(view)
    assert assessment.spec is not None
    rerun = assessment.spec.rerun
    census = take_census(view, assessment)
    current = {attempt_key(trial): trial for trial in census.current}
    expected = []
    for cell in assessment.cells:
        for key in cell.keys():  # noqa: SIM118 (no mapping)
            trial = current.get(key)
            if trial is None:
                expected.append((key, 0, 0))
            elif trial.generation < rerun.generation and outcomes(trial) & set(rerun.which):
                expected.append((key, rerun.generation, 0))
            elif trial.begins_again:
                expected.append((key, trial.generation, trial.restarts + 1))
    found = [
        (missing.cell.keys()[missing.attempt - 1], missing.generation, missing.restarts)
        for missing in census.missing
    ]
    assert found == expected


@given(views())
def test_trials_beyond_what_is_asked_for_are_named(view: RunView):
    assessment = assess(view)
    planned = {key for cell in assessment.cells for key in cell.keys()}  # noqa: SIM118
    existing = [attempt_key(t) for t in view.trials if t.kind is TrialKind.ATTEMPT]
    lost = [key for key in existing if key not in planned]
    assert assessment.immutable == bool(lost)
    assert not lost or f"found {counted(len(lost), 'attempt')} " in str(assessment.problems[-1])


@given(views())
def test_what_trials_wait_for_changes_no_plan_where_it_is_not_wanted(view: RunView):
    plain = tuple(replace(trial, waits_for="", waits_message="") for trial in view.trials)
    if not wants_waits(trial.phase.value for trial in view.trials):
        assert plan_run(view) == plan_run(replace(view, trials=plain))


@given(trials(), st.sampled_from(({}, {"completionTime": "2026-11-30T07:32:16Z"})))
def test_results_are_wanted_once_all_trials_have_ended(
    listed: tuple[TrialSummary, ...], status: dict[str, str]
):
    ended = [trial.phase in TERMINAL_TRIAL_PHASES for trial in listed]
    wanted = bool(ended) and all(ended) and not status
    assert wants_results({"status": status}, listed) == wanted
