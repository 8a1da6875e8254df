"""Names: deterministic, distinct, short enough for what is named after them."""

from __future__ import annotations

import pytest

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.api import names

COORDINATES = {
    "run": "r" * names.RUN_NAME_LIMIT,
    "run_uid": "11111111-1111-4111-8111-111111111111",
    "task": "parser",
    "task_digest": "a" * 64,
    "agent": "oracle",
    "model": "none",
    "loop": "outer-loop",
    "attempt": 1,
    "generation": 0,
}


def test_the_same_coordinates_give_the_same_name():
    assert names.attempt_trial_name(**COORDINATES) == names.attempt_trial_name(**COORDINATES)


@pytest.mark.parametrize(
    "changed",
    [
        {"run_uid": "other"},
        {"task": "ledger"},
        {"task_digest": "b" * 64},
        {"agent": "nop"},
        {"model": "large"},
        {"loop": "single"},
        {"attempt": 2},
        {"generation": 1},
    ],
    ids=lambda changed: f"another {next(iter(changed))} gives another name",
)
def test_every_coordinate_counts(changed: dict[str, object]):
    assert names.attempt_trial_name(**COORDINATES) != names.attempt_trial_name(
        **(COORDINATES | changed)
    )


def test_pods_of_the_longest_run_fit_a_host_name():
    trials = [
        names.attempt_trial_name(**COORDINATES),
        names.inventory_trial_name(
            run="r" * names.RUN_NAME_LIMIT, run_uid="u", task_digest="a" * 64, generation=0
        ),
    ]
    assert all(len(names.pod_name(trial, Role.ADJUDICATOR, 9999)) <= 63 for trial in trials)


def test_a_long_label_value_is_hashed_and_stays_distinct():
    values = {names.label_value("x" * 64 + end) for end in "ab"}
    assert len(values) == 2
    assert all(len(value) <= 63 for value in values)


def test_pods_carry_what_policies_and_informers_select_by():
    labels = names.pod_labels(
        run="demo",
        run_uid="u",
        trial="demo-0",
        trial_uid="t",
        role=Role.AGENT,
        kind=TrialKind.ATTEMPT,
    )
    assert labels["stayer.dev/role"] == labels["app.kubernetes.io/component"] == "agent"
    assert labels["stayer.dev/trial-uid"] == "t"
    assert labels["stayer.dev/run-uid"] == "u"
