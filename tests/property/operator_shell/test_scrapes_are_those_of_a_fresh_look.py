"""Whatever happens to Trials, gauges that kept what they counted answer as new ones do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stayer_evaluator.records.outcomes import TrialKind
from stayer_operator.adapters.observed import InformedView
from stayer_operator.api.conditions import TERMINAL_TRIAL_PHASES, TrialPhase
from stayer_operator.core.observed import ObjectKey, Progress, RunObject, TrialObject
from stayer_operator.telemetry.run_gauges import RunGauges

NUMBERS = ("unitsCleared", "unitsTotal", "regressions", "recoveries", "snapshotsTaken")
small = st.integers(0, 3)
names = st.sampled_from(("t0", "t1", "t2", "t3", "t4"))
statuses = st.fixed_dictionaries(
    {"phase": st.sampled_from(TrialPhase).map(lambda phase: phase.value)},
    optional={
        **dict.fromkeys(NUMBERS, small),
        "snapshotsAdjudicated": small,
        "resolved": st.booleans(),
    },
)
specs = st.fixed_dictionaries(
    {"task": st.sampled_from(({"name": "x", "digest": "d"}, {"name": "y", "digest": "d"}))},
    optional={"attempt": st.integers(1, 2), "generation": small},
)
reports = st.builds(
    Progress,
    units_cleared=st.none() | small,
    snapshots_taken=st.none() | st.integers(0, 9),
    snapshots_adjudicated=st.none() | small,
)
steps = st.one_of(
    st.tuples(st.just("make"), names, st.tuples(specs, statuses, st.sampled_from(TrialKind))),
    st.tuples(st.just("change"), names, statuses),
    st.tuples(st.just("respecify"), names, specs),
    st.tuples(st.just("report"), names, reports),
    st.tuples(st.just("remove"), names, st.none()),
    st.tuples(st.just("see run"), st.sampled_from(("run", "other")), st.none()),
    st.tuples(st.just("scrape"), st.just(""), st.none()),
    st.tuples(st.just("scrape"), st.just(""), st.none()),
)


class Sight:
    """What an operator sees, and its gauges."""

    def __init__(self) -> None:
        self.progress: dict[ObjectKey, Progress] = {}
        self.view = InformedView(self.progress.get)
        self.gauges = RunGauges(self.view)
        self._versions = count(1)

    def do(self, what: str, name: str, with_: Any) -> None:
        trial = self.view.trial(ObjectKey("lab", name))
        if what == "make" and trial is None:
            self.make(name, *with_)
        elif what == "report":
            self.progress[ObjectKey("lab", name)] = with_
        elif what == "see run":
            self.view.run_mirror.put(make_run(name, self._next()))
        elif trial is not None and what == "change":
            self.put(replace(trial, status=with_))
        elif trial is not None and what == "respecify":
            self.put(replace(trial, spec=with_))
        elif trial is not None and what == "remove":
            self.view.trial_mirror.remove("lab", name, trial.uid)

    def make(
        self, name: str, spec: Mapping[str, Any], status: Mapping[str, Any], kind: TrialKind
    ) -> None:
        run = "run" if name < "t4" else "other"
        self.put(
            TrialObject(
                namespace="lab",
                name=name,
                uid=f"uid-{self._next()}",
                resource_version="",
                generation=1,
                created=0.0,
                deleted=False,
                run=run,
                run_uid=f"uid-{run}",
                kind=kind,
                spec=spec,
                status=status,
            )
        )

    def put(self, trial: TrialObject) -> None:
        self.view.trial_mirror.put(replace(trial, resource_version=self._next()))

    def _next(self) -> str:
        return str(next(self._versions))


def make_run(name: str, version: str) -> RunObject:
    return RunObject(
        namespace="lab",
        name=name,
        uid=f"uid-{name}",
        resource_version=version,
        generation=1,
        created=0.0,
        deleted=False,
    )


def said(gauges: RunGauges) -> list[Any]:
    return [sample for family in gauges.collect() for sample in family.samples]


@given(st.lists(steps, max_size=30))
def test_a_scrape_says_what_new_gauges_would_say(chosen: list[tuple[str, str, Any]]):
    sight = Sight()
    for what, name, with_ in chosen:
        if what == "scrape":
            assert said(sight.gauges) == said(RunGauges(sight.view))
        else:
            sight.do(what, name, with_)
    assert said(sight.gauges) == said(RunGauges(sight.view))


@given(st.lists(steps, max_size=30))
def test_each_attempt_counts_by_its_newest_generation(chosen: list[tuple[str, str, Any]]):
    """Said once more, in the words of a table; a tie goes to the one that was seen first."""
    sight = Sight()
    for what, name, with_ in chosen:
        sight.do(what, name, with_)
        said(sight.gauges)
    newest: dict[Any, TrialObject] = {}
    for trial in sight.view.trials():
        attempt = (trial.run, trial.spec["task"]["name"], trial.spec.get("attempt"))
        if trial.kind is TrialKind.ATTEMPT and (
            attempt not in newest or generation(trial) > generation(newest[attempt])
        ):
            newest[attempt] = trial
    for run in ("run", "other"):
        mine = [trial for trial in newest.values() if trial.run == run]
        found = {
            (sample.name, sample.labels.get("phase", "")): sample.value
            for sample in said(sight.gauges)
            if sample.labels.get("run") == run
        }
        for phase in TrialPhase if mine else ():
            expected = sum(trial.status["phase"] == phase for trial in mine)
            assert found["stayer_run_trials", phase] == expected
        if mine:
            cleared = sum(numbers_of(sight, mine))
            assert found["stayer_run_units_cleared", ""] == cleared


def generation(trial: TrialObject) -> int:
    return int(trial.spec.get("generation", 0))


def numbers_of(sight: Sight, trials: list[TrialObject]) -> Iterator[int]:
    """Units cleared, by the status or a report that is ahead of it."""
    for trial in trials:
        stored = int(trial.status.get("unitsCleared", 0))
        progress = sight.progress.get(trial.key)
        if progress is None or trial.status["phase"] in TERMINAL_TRIAL_PHASES:
            yield stored
        else:
            yield max(stored, progress.units_cleared or 0)
