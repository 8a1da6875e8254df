"""admit: never too much, never out of order, always the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.api.conditions import Reason
from stayer_operator.core.run.admission import (
    AdmissionRun,
    AdmissionTrial,
    AdmissionView,
    admit,
)

RUN_KEYS = ("r0", "r1", "r2")
MODELS = ("", "small", "large")
SHAPES = ("thin", "wide")

runs = st.tuples(
    *(
        st.builds(
            AdmissionRun,
            key=st.just(key),
            created=st.integers(0, 3).map(float),
            priority=st.integers(0, 1),
            parallelism=st.integers(1, 6),
            model_limits=st.dictionaries(st.sampled_from(MODELS[1:]), st.integers(1, 3)),
            suspended=st.booleans() if key == "r2" else st.just(False),
            cancelled=st.booleans() if key == "r2" else st.just(False),
            admissible=st.booleans() if key == "r2" else st.just(True),
        )
        for key in RUN_KEYS
    )
)


@st.composite
def trials(draw: st.DrawFn) -> tuple[AdmissionTrial, ...]:
    made = []
    for index in range(draw(st.integers(0, 25))):
        holds = draw(st.booleans())
        starting = holds and draw(st.booleans())
        made.append(
            AdmissionTrial(
                key=f"t{index:02d}",
                run=draw(st.sampled_from((*RUN_KEYS, "gone"))),
                kind=draw(st.sampled_from(TrialKind)),
                model=draw(st.sampled_from(MODELS)),
                shape=draw(st.sampled_from(SHAPES)),
                expected_seconds=draw(st.integers(0, 3)) * 100.0,
                holds=holds,
                starting=starting,
                unschedulable=starting and draw(st.integers(0, 5)) == 0,
                inventory_ready=draw(st.integers(0, 5)) > 0,
                not_before=draw(st.sampled_from((0.0, 50.0, 150.0))),
            )
        )
    return tuple(made)


views = st.builds(
    AdmissionView,
    runs=runs,
    trials=trials(),
    now=st.just(100.0),
    starting_per_shape=st.integers(1, 4),
)


@given(views, st.lists(st.integers(0, 3), max_size=6))
def test_who_was_admitted_stays_so_when_others_arrive(view: AdmissionView, lengths: list[int]):
    """The POST of its pods may be under way: its place is taken."""
    before = admit(view).admitted
    arrived = tuple(
        AdmissionTrial(key=f"a{index:02d}", run="r0", expected_seconds=100.0 * length)
        for index, length in enumerate(lengths)
    )
    later = replace(view, trials=(*arrived, *view.trials), before=before)

    assert admit(later).admitted >= before


def after(view: AdmissionView) -> AdmissionView:
    """The view once everything admitted holds its pods."""
    admitted = admit(view).admitted
    return replace(
        view,
        trials=tuple(
            replace(trial, holds=True, starting=True) if trial.key in admitted else trial
            for trial in view.trials
        ),
    )


@given(views)
def test_run_parallelism_is_never_exceeded_by_admission(view: AdmissionView):
    admitted = admit(view).admitted
    held = Counter(trial.run for trial in view.trials if trial.holds)
    new = Counter(trial.run for trial in view.trials if trial.key in admitted)
    for run in view.runs:
        assert not new[run.key] or held[run.key] + new[run.key] <= run.parallelism


@given(views)
def test_model_limits_are_never_exceeded_by_admission(view: AdmissionView):
    admitted = admit(view).admitted
    for run in view.runs:
        for model, limit in run.model_limits.items():
            mine = [t for t in view.trials if (t.run, t.model) == (run.key, model)]
            new = sum(t.key in admitted for t in mine)
            assert not new or new + sum(t.holds for t in mine) <= limit


@given(views)
def test_only_trials_that_may_start_are_admitted(view: AdmissionView):
    admitted = admit(view).admitted
    open_runs = {
        run.key for run in view.runs if run.admissible and not (run.suspended or run.cancelled)
    }
    blocked = {trial.shape for trial in view.trials if trial.holds and trial.unschedulable}
    for trial in view.trials:
        if trial.key in admitted:
            assert not trial.holds
            assert trial.run in open_runs
            assert trial.inventory_ready
            assert trial.not_before <= view.now
            assert trial.shape not in blocked


@given(views)
def test_few_pairs_of_a_shape_look_for_nodes_at_once(view: AdmissionView):
    admitted = admit(view).admitted
    for shape in SHAPES:
        mine = [trial for trial in view.trials if trial.shape == shape]
        new = sum(trial.key in admitted for trial in mine)
        starting = sum(trial.holds and trial.starting for trial in mine)
        assert not new or new + starting <= view.starting_per_shape


@given(views, st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_view(view: AdmissionView, rng):
    shuffled_trials, shuffled_runs = list(view.trials), list(view.runs)
    rng.shuffle(shuffled_trials)
    rng.shuffle(shuffled_runs)
    other = replace(view, trials=tuple(shuffled_trials), runs=tuple(shuffled_runs))
    assert admit(other).admitted == admit(view).admitted


@given(views)
def test_every_waiting_trial_is_admitted_or_told_why_not(view: AdmissionView):
    answer = admit(view)
    waiting = {trial.key for trial in view.trials if not trial.holds}
    assert answer.admitted | answer.waits.keys() == waiting
    assert not answer.admitted & answer.waits.keys()


@given(views)
def test_asking_again_admits_nothing_more(view: AdmissionView):
    assert admit(after(view)).admitted == frozenset()


@given(views)
def test_nothing_that_could_start_is_left_waiting(view: AdmissionView):
    """Work conserving: whoever waits for a limit waits for one that is really reached."""
    done = after(view)
    held = Counter(trial.run for trial in done.trials if trial.holds)
    for key, wait in admit(view).waits.items():
        trial = next(t for t in view.trials if t.key == key)
        run = next((r for r in view.runs if r.key == trial.run), None)
        if run is not None and wait.reason is Reason.RUN_PARALLELISM:
            assert held[run.key] >= run.parallelism


@given(views)
def test_a_back_off_wakes_admission_when_it_ends(view: AdmissionView):
    backing_off = [
        t.not_before - view.now for t in view.trials if not t.holds and t.not_before > view.now
    ]
    assert admit(view).wake_after == (min(backing_off) if backing_off else None)


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=4),
    st.integers(1, 12),
)
def test_equal_runs_share_what_is_there(held: list[int], places: int):
    """Max-min fair: no run gets a place while another one that wants more holds two fewer."""
    plenty = 40
    keys = [f"r{index}" for index in range(len(held))]
    view = AdmissionView(
        runs=tuple(
            AdmissionRun(key=key, created=float(index), parallelism=plenty)
            for index, key in enumerate(keys)
        ),
        trials=tuple(
            AdmissionTrial(key=f"{key}-{number:02d}", run=key, shape="x", holds=number < mine)
            for key, mine in zip(keys, held, strict=True)
            for number in range(plenty)
        ),
        now=0.0,
        starting_per_shape=places,
    )
    admitted = admit(view).admitted
    assert len(admitted) == places
    new = Counter(key.rsplit("-", 1)[0] for key in admitted)
    total = {key: mine + new[key] for key, mine in zip(keys, held, strict=True)}
    for key in keys:
        if new[key]:
            assert total[key] - min(total.values()) <= 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 12))
def test_within_a_run_the_longest_goes_first(lengths: list[int], places: int):
    view = AdmissionView(
        runs=(AdmissionRun(key="r", created=0.0, parallelism=places),),
        trials=tuple(
            AdmissionTrial(key=f"t{index:02d}", run="r", expected_seconds=float(length))
            for index, length in enumerate(lengths)
        ),
        now=0.0,
    )
    admitted = admit(view).admitted
    taken = sorted(lengths[int(key[1:])] for key in admitted)
    assert taken == sorted(lengths)[-len(taken) :]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 8))
def test_priority_comes_before_fairness(low: int, high: int, places: int):
    view = AdmissionView(
        runs=(
            AdmissionRun(key="low", created=0.0, priority=0, parallelism=99),
            AdmissionRun(key="high", created=1.0, priority=5, parallelism=99),
        ),
        trials=tuple(
            AdmissionTrial(
                key=f"{run}-{index}", run=run, expected_seconds=9.0 if run == "low" else 1
            )
            for run, count in (("low", low), ("high", high))
            for index in range(count)
        ),
        now=0.0,
        starting_per_shape=places,
    )
    admitted = Counter(key.split("-")[0] for key in admit(view).admitted)
    assert admitted["high"] == min(high, places)
    assert admitted["low"] == min(low, places - admitted["high"])


def test_inventories_go_before_longer_attempts():
    view = AdmissionView(
        runs=(AdmissionRun(key="r", created=0.0, parallelism=1),),
        trials=(
            AdmissionTrial(key="attempt", run="r", expected_seconds=9000.0),
            AdmissionTrial(key="inventory", run="r", kind=TrialKind.INVENTORY),
        ),
        now=0.0,
    )
    assert admit(view).admitted == {"inventory"}
