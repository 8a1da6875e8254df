"""What `stayer run plan` says a run would take."""

import pytest

from stayer_evaluator.records.run import RunTask
from stayer_operator.api.run import RunSpec
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


def test_a_template_replaces_the_default_request_of_its_role_only():
    templates = {"agent": {"resources": {"requests": {"cpu": 2}}}}

    found = prospect(
        spec(parallelism=1, podTemplates=templates), (task("a", "1"),), TASK_DEFAULTS, SIDECAR
    )

    assert found.cpu == pytest.approx(2.05 + 0.15)


def test_a_run_with_fewer_trials_than_parallelism_takes_only_what_it_has():
    found = prospect(spec(attempts=1), (task("a", "1"),), TASK_DEFAULTS, SIDECAR)

    assert found.pods_at_once == 4
