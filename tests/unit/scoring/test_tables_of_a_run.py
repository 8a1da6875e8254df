"""Tables while a run goes on: a trial that has not ended counts in no number."""

from stayer_evaluator.records.outcomes import FailureMode
from stayer_evaluator.records.results import Metrics
from stayer_evaluator.records.run_results import RunResults, TrialLine
from stayer_evaluator.scoring.run import summarize
from stayer_evaluator.scoring.tables import cell_table, trial_table

METRICS = Metrics(
    resolved=True, tpr=1, tpr_ungated=1, depth=1, reg_events=0, recoveries=0, reg_rate=None,
    reg_final=0, rounds=1, sigma=(), completion_order=(), order_violations=0, order_diff=0,
    kendall_tau=None, units_cleared=2, units_total=2, cases_passed=2, cases_total=2,
)  # fmt: skip


def line(attempt: int, phase: str, agent: str = "oracle", **more) -> TrialLine:
    fields = {"failure_mode": FailureMode.NONE, "metrics": None, **more}
    return TrialLine(
        trial=f"{agent}-{attempt}", task="t", agent=agent, model=None, loop="outer",
        attempt=attempt, phase=phase, valid=fields["metrics"] is not None, **fields,
    )  # fmt: skip


def report(*lines: TrialLine) -> RunResults:
    return summarize(
        namespace="ns", run="r", run_uid="u", benchmark="loops", test_visibility="attached",
        network="closed", trials=lines,
    )  # fmt: skip


def shown(table, row: int) -> dict[str, object]:
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_a_trial_that_runs_shows_nothing_but_its_snapshots():
    row = shown(trial_table(report(line(1, "Running", snapshots_taken=3))), 0)

    assert row.pop("SNAPSHOTS") == "0/3"
    assert {name for name, value in row.items() if value is not None} == {
        "AGENT", "TASK", "ATTEMPT", "PHASE",
    }  # fmt: skip


def test_an_ended_trial_shows_its_failure_mode_even_when_it_is_none():
    lines = line(1, "Succeeded", metrics=METRICS), line(2, "Cancelled", canaries_run=4)
    table = trial_table(report(*lines))

    assert [row[-1] for row in table.rows] == ["none", "none"]
    assert shown(table, 1)["CANARIES"] == 4


def test_cells_count_only_trials_that_have_ended_and_say_so():
    found = report(
        line(1, "Succeeded", metrics=METRICS), line(2, "Running"), line(1, "Pending", "nop"),
    )  # fmt: skip

    oracle, nop = shown(cell_table(found), 1), shown(cell_table(found), 0)

    assert (oracle["TRIALS"], oracle["RESOLVED"]) == ("1/2", 1)
    assert oracle["RR"] == "1.000 [1.00, 1.00] n=1"
    assert nop["TRIALS"] == "0/1"
    assert set(list(nop.values())[4:]) == {None}
    assert cell_table(found).note.startswith("2 trials have not ended, in no number yet; ")
    assert found.cells[1].resolve_rate.mean == 0.5, "the document means what it has always meant"


def test_a_result_counts_before_the_phase_has_followed():
    found = report(line(1, "Draining", metrics=METRICS))
    lost = report(line(1, "Draining", failure_mode=FailureMode.INFRA_ERROR))

    assert shown(cell_table(found), 0)["TRIALS"] == 1
    assert trial_table(lost).rows[0][-1] == "infra_error"
    assert cell_table(found).note.startswith("test visibility")


def test_of_an_ended_run_all_is_shown_as_stored():
    found = report(line(1, "Succeeded", metrics=METRICS), line(2, "Failed"))

    row = shown(cell_table(found), 0)

    assert (row["TRIALS"], row["RESOLVED"], row["PASS@K"]) == (2, 1, "1:0.50 2:1.00")
