"""What the command line makes of manifests and API objects, without a cluster."""

from datetime import UTC, datetime

import pytest

from stayer_operator.api.wording import counted
from stayer_operator.cli.documents import age, read_run, run_row, waiting_reason
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.image_build import wanted_base
from stayer_operator.cli.output import text

NOW = datetime(2030, 1, 2, tzinfo=UTC).timestamp()
GOOD = "apiVersion: stayer.dev/v1alpha1\nkind: BenchmarkRun\nmetadata: {name: r}\nspec: {}\n"


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        pytest.param("2030-01-01T23:59:15Z", "45s", id="seconds"),
        pytest.param("2030-01-01T23:48:00Z", "12m", id="minutes"),
        pytest.param("2030-01-01T21:00:00Z", "3h", id="hours"),
        pytest.param("2029-12-29T00:00:00Z", "4d", id="days"),
        pytest.param("2030-01-02T00:00:05Z", "0s", id="a clock that is ahead"),
        pytest.param(None, "-", id="no time"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(timestamp, expected):
    assert age(timestamp, NOW) == expected


def test_a_run_without_status_is_pending_with_nothing_done():
    run = {"metadata": {"name": "r"}, "spec": {"benchmark": "loops"}}

    assert run_row(run, NOW) == ("r", "loops", "Pending", "0/0", 0, None, 0, "-")


def test_failed_and_cancelled_trials_are_done_and_draining_ones_still_run():
    trials = {"total": 9, "succeeded": 2, "failed": 1, "cancelled": 1, "active": 5}
    run = {"metadata": {"name": "r"}, "spec": {}, "status": {"phase": "Running", "trials": trials}}

    row = run_row(run, NOW)

    assert row[3:5] == ("4/9", 5)


def test_the_first_condition_that_is_not_true_says_why_a_run_waits():
    conditions = [
        {"type": "Accepted", "status": "True"},
        {"type": "TasksReady", "status": "False", "reason": "TaskSetNotFound", "message": "none"},
        {"type": "Progressing", "status": "False", "reason": "WaitingForTasks", "message": "m"},
    ]

    reason = waiting_reason({"status": {"conditions": conditions}})

    assert reason == "TasksReady=False TaskSetNotFound: none"


def test_a_good_manifest_is_read(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(f"---\n{GOOD}---\n")

    assert read_run(path)["metadata"]["name"] == "r"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("a: [", "not YAML", id="broken YAML"),
        pytest.param("", "found 0 documents, accepted: one BenchmarkRun", id="nothing"),
        pytest.param(f"{GOOD}---\n{GOOD}", "found 2 documents", id="two runs"),
        pytest.param("apiVersion: v1\nkind: Pod\n", "found v1 Pod, accepted:", id="another kind"),
        pytest.param(GOOD.replace("name: r", ""), "metadata.name is missing", id="no name"),
        pytest.param(GOOD.replace("name: r", "name: 7"), "found 7, accepted: text", id="a number"),
        pytest.param("- 1\n", "accepted: one BenchmarkRun", id="a list"),
    ],
)
def test_a_bad_manifest_is_one_message_that_names_the_file(tmp_path, content, words):
    path = tmp_path / "run.yaml"
    path.write_text(content)

    with pytest.raises(CliError) as error:
        read_run(path)

    assert str(path) in str(error.value)
    assert words in str(error.value)


def test_a_missing_file_is_one_message(tmp_path):
    with pytest.raises(CliError, match="No such file"):
        read_run(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param("x_base: node", {"BASE_IMAGE": "n"}, id="a kind that is given"),
        pytest.param("x_base: cobol", {}, id="a kind that is not"),
        pytest.param("instruction: x", {}, id="no kind"),
    ],
)
def test_the_base_image_follows_the_kind_that_the_task_names(tmp_path, task, expected):
    (tmp_path / "task.yaml").write_text(task)

    assert wanted_base(tmp_path, {"node": "n", "python": "p"}) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("", "-"), (0, "0"), (0.5, "0.500"), (True, "yes"), (False, "no"), ("x", "x")],
)
def test_cells_show_nothing_as_a_dash_and_zero_as_zero(value, shown):
    assert text(value) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")])
def test_one_is_not_many(number, shown):
    assert counted(number, "task") == shown
