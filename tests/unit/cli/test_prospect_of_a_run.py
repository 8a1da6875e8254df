"""What `stayer run plan` says a run would take."""

import pytest

from stayer_evaluator.records.run import RunTask
from stayer_operator.api.run import RunSpec
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.planning import lines, run_name_problems, run_prospect
from stayer_operator.core.run.prospect import prospect

TASK_DEFAULTS = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "2"}}
SIDECAR = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {}}


def task(name, digest, estimate=None, limit=3600.0):
    return RunTask(
        name=name, digest=digest, image="i", units=("u",), max_agent_timeout_sec=limit,
        max_test_timeout_sec=60, estimated_duration_sec=estimate,
    )  # fmt: skip


def spec(**changes):
    document = {
        "benchmark": "loops",
        "tasks": {"source": {"s3": {"prefix": "tasksets/x"}}},
        "matrix": {
            "agents": [{"name": "oracle", "harness": "oracle"}, {"name": "nop", "harness": "nop"}]
        },
        "attempts": 2,
        "parallelism": 4,
        **changes,
    }
    return RunSpec.model_validate(document)


def test_trials_pods_and_requests_follow_from_cells_and_parallelism():
    found = prospect(spec(), (task("a", "1"), task("b", "2")), TASK_DEFAULTS, SIDECAR)

    assert (len(found.cells), found.trials, found.inventories) == (4, 8, 2)
    assert (found.pods, found.pods_at_once) == (18, 8)
    assert found.cpu == pytest.approx(4 * 2 * 0.15)
    assert found.memory == 4 * 2 * 352 * 1024**2
    assert found.longest_hours == pytest.approx(8 / 4)


def test_an_estimate_shortens_the_expectation_but_not_the_bound():
    found = prospect(spec(), (task("a", "1", estimate=900),), TASK_DEFAULTS, SIDECAR)

    assert found.expected_hours == pytest.approx(4 * 900 / 4 / 3600)
    assert found.longest_hours == pytest.approx(4 * 3600 / 4 / 3600)


def test_hours_are_those_of_the_last_trial_to_end():
    """Eight hours in six places are two rounds; a trial cannot be divided."""
    tasks = (task("a", "1"), task("b", "2"))

    assert prospect(spec(parallelism=6), tasks, TASK_DEFAULTS, SIDECAR).longest_hours == 2
    assert prospect(spec(parallelism=100), tasks, TASK_DEFAULTS, SIDECAR).longest_hours == 1


def test_a_template_replaces_the_default_request_of_its_role_only():
    templates = {"agent": {"resources": {"requests": {"cpu": 2}}}}

    found = prospect(
        spec(parallelism=1, podTemplates=templates), (task("a", "1"),), TASK_DEFAULTS, SIDECAR
    )

    assert found.cpu == pytest.approx(2.05 + 0.15)


def test_a_run_with_fewer_trials_than_parallelism_takes_only_what_it_has():
    found = prospect(spec(attempts=1), (task("a", "1"),), TASK_DEFAULTS, SIDECAR)

    assert found.pods_at_once == 4


@pytest.mark.parametrize("name", ["a", "a-1", "1", "a" * 40, "a--b"])
def test_a_name_that_kubernetes_takes_is_good(name):
    assert run_name_problems(name) == ()


@pytest.mark.parametrize(
    "name", ["", "-", "-a", "a-", "A", "a_b", "a b", "ä", "a.b", "a" * 41, "a\n", "a/b"]
)
def test_a_name_that_kubernetes_refuses_is_one_problem(name):
    [problem] = run_name_problems(name)

    assert problem.field == "metadata.name"
    assert "a-z, 0-9 and -" in problem.accepted


def test_name_and_spec_are_refused_together():
    manifest = {"metadata": {"name": "My_Run"}, "spec": {"benchmark": "other"}}

    with pytest.raises(CliError, match=r'metadata.name: found "My_Run"(.|\n)*spec.benchmark'):
        run_prospect(manifest)


def test_one_inventory_is_one():
    one = prospect(spec(), (task("a", "1"),), TASK_DEFAULTS, SIDECAR)
    two = prospect(spec(), (task("a", "1"), task("b", "2")), TASK_DEFAULTS, SIDECAR)

    assert "and 1 inventory where" in lines(one)[0]
    assert "and 2 inventories where" in lines(two)[0]
