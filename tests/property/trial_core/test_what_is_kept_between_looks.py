"""What gathering and planning keep from one look to the next changes nothing of what they find."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from makers_any_views import statuses, views
from makers_trial import (
    EPOCH,
    NAMESPACE,
    RUN,
    RUN_UID,
    TRIAL,
    TRIAL_UID,
    make_pod_settings,
    make_raw_spec,
    make_raw_trial,
)
from makers_views import POD_KINDS, silent_node
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.storage.memory import MemoryStore
from stayer_operator.adapters.memory_time import MemoryTelemetry
from stayer_operator.api import names
from stayer_operator.api.conditions import TERMINAL_TRIAL_PHASES, TrialCondition
from stayer_operator.core.observed import (
    NodeView,
    ObjectKey,
    PodView,
    Progress,
    RunObject,
    TrialObject,
)
from stayer_operator.core.projection import run_object, trial_object
from stayer_operator.core.trial.planner import plan_trial
from stayer_operator.core.trial.rules import RULES
from stayer_operator.core.trial.settings import TrialSettings
from stayer_operator.core.trial.status import render_trial_status
from stayer_operator.core.trial.view import TrialView
from stayer_operator.reconcile.gather_trial import INTENTS, TrialGathering
from stayer_operator.reconcile.ledger import Ledger

UIDS = (RUN_UID, "44444444-4444-4444-8444-444444444444")
RUNS = st.none() | st.builds(
    lambda uid, spec: run_object(
        {"metadata": {"namespace": NAMESPACE, "name": RUN, "uid": uid}, "spec": spec}
    ),
    st.sampled_from(UIDS),
    st.sampled_from([{}, {"suspend": True}, {"cancel": True}]),
)
PODS = st.lists(
    st.sampled_from([pod for kinds in POD_KINDS.values() for pod in kinds.values()]),
    max_size=4,
    unique_by=lambda pod: pod.name,
)
POD_NAMES = st.builds(
    names.pod_name, st.just(TRIAL), st.sampled_from(list(Role)), st.integers(1, 3)
)


@dataclass
class Sight:
    """What the informers show of one Trial."""

    a_trial: TrialObject
    a_run: RunObject | None = None
    a_node: NodeView | None = None
    all_pods: tuple[PodView, ...] = ()
    witness: bool = True
    counts: Progress | None = field(default=None)

    def trial(self, key: ObjectKey) -> TrialObject | None:
        return self.a_trial

    def trials(self) -> list[TrialObject]:
        return [self.a_trial]

    def trials_of_run(self, run_uid: str) -> list[TrialObject]:
        return [self.a_trial]

    def pods(self, trial: ObjectKey) -> tuple[PodView, ...]:
        return self.all_pods

    def run(self, key: ObjectKey) -> RunObject | None:
        return self.a_run

    def runs(self) -> list[RunObject]:
        return [self.a_run] if self.a_run is not None else []

    def node(self, name: str) -> NodeView | None:
        return self.a_node

    def progress(self, trial: ObjectKey) -> Progress | None:
        return self.counts

    def witnessed(self, trial_uid: str) -> bool:
        return self.witness


def gathering(sight: Sight, ledger: Ledger) -> TrialGathering:
    return TrialGathering(
        observed=sight,
        evidence=MemoryStore(),
        telemetry=MemoryTelemetry(),
        ledger=ledger,
        pod_settings=make_pod_settings(),
        settings=TrialSettings(),
    )


def without_what_is_kept(ledger: Ledger) -> Ledger:
    """A ledger with the same notes, in which nothing that was parsed is left."""
    bare = copy.deepcopy(ledger)
    if (notes := bare.find(TRIAL_UID)) is not None:
        notes.parsed = None
    return bare


@given(st.data())
def test_a_look_finds_what_a_first_look_would(data: st.DataObject) -> None:
    spec = make_raw_spec(kind=data.draw(st.sampled_from(["attempt", "inventory"])))
    sight = Sight(a_trial=trial_object(make_raw_trial(spec=spec)))
    ledger = Ledger()
    lasting = gathering(sight, ledger)

    for now in range(data.draw(st.integers(1, 8))):
        change(data, sight, ledger, spec, float(now))
        admitted = data.draw(st.booleans())
        first = gathering(sight, without_what_is_kept(ledger))

        fresh = first.look(sight.a_trial, admitted, EPOCH + now)
        view = lasting.look(sight.a_trial, admitted, EPOCH + now)

        assert view == fresh
        assert plan_trial(view) == plan_trial(fresh)
        assert notes_of(ledger) == notes_of(first.ledger)


def test_a_changed_run_is_asked_anew_what_it_wants() -> None:
    sight = Sight(a_trial=trial_object(make_raw_trial()))
    lasting = gathering(sight, Ledger())
    wanted = []

    for spec in ({}, {"suspend": True}, {"suspend": True}, {"cancel": True}, {}):
        sight.a_run = run_object(
            {"metadata": {"namespace": NAMESPACE, "name": RUN, "uid": RUN_UID}, "spec": spec}
        )
        for _ in range(2):
            intent = lasting.look(sight.a_trial, True, EPOCH).run
            assert intent is not None
            wanted.append((intent.suspend, intent.cancel))

    runs = [(False, False), (True, False), (True, False), (False, True), (False, False)]
    assert wanted == [intent for intent in runs for _ in range(2)]


def test_intents_of_few_runs_are_kept() -> None:
    ledger, kept = Ledger(), set()
    sight = Sight(a_trial=trial_object(make_raw_trial()))
    lasting = gathering(sight, ledger)

    for number in range(5 * INTENTS):
        sight.a_trial = replace(sight.a_trial, run_uid=f"run-{number}")
        sight.a_run = run_object({"metadata": {"name": RUN, "uid": f"run-{number}"}})
        lasting.look(sight.a_trial, True, EPOCH)
        kept.add(len(lasting.intents))

    assert max(kept) == INTENTS


def change(
    data: st.DataObject, sight: Sight, ledger: Ledger, spec: dict[str, object], now: float
) -> None:
    """One thing or nothing is another one now."""
    notes = ledger.find(TRIAL_UID)
    match data.draw(st.integers(0, 7)):
        case 0:
            sight.a_run = data.draw(RUNS)
        case 1:
            status = render_trial_status(data.draw(statuses()))
            sight.a_trial = trial_object(make_raw_trial(spec=spec, status=status))
        case 2 | 3:
            sight.all_pods = tuple(data.draw(PODS))
        case 4:
            sight.all_pods = tuple(
                pod._replace(owner_uid=data.draw(st.sampled_from([TRIAL_UID, "another"])))
                for pod in sight.all_pods
            )
        case 5:
            sight.a_node = data.draw(st.sampled_from([None, silent_node()]))
            sight.counts = data.draw(st.sampled_from([None, Progress(units_cleared=4)]))
        case 6 if notes is not None:
            data.draw(st.sampled_from([notes.posted, notes.tried]))[data.draw(POD_NAMES)] = now
        case 7:
            ledger.close(TRIAL_UID)


def notes_of(ledger: Ledger) -> object:
    """What is noted about the Trial; the sights of its pods by themselves."""
    notes = ledger.find(TRIAL_UID)
    assert notes is not None
    return notes.floor, notes.posted, notes.tried, notes.seen


@given(views())
def test_what_was_asked_before_changes_no_plan(view: TrialView) -> None:
    fresh = replace(view)

    for rule in reversed(RULES):
        rule.decide(view)

    assert plan_trial(view) == plan_trial(fresh)


@given(views())
def test_what_is_made_with_a_view_is_what_its_status_says(view: TrialView) -> None:
    status = view.status

    assert view.held == {type_ for type_ in TrialCondition if status.holds(type_)}
    assert view.is_terminal == (status.phase in TERMINAL_TRIAL_PHASES)
    assert view.needed == (view.roles if view.agent_needed else (view.adjudicator,))
