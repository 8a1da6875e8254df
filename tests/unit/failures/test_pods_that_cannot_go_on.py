"""Pods that have not ended and may not come to work: what is read from containers and sidecars."""

from typing import Any

import pytest

from makers_trial import (
    ended,
    make_raw_pod,
    running,
    said,
    terminated,
    waiting,
)
from stayer_evaluator.records.outcomes import Role
from stayer_operator.api.conditions import Reason
from stayer_operator.core import failures
from stayer_operator.core.failures import Cause
from stayer_operator.core.projection import pod_view
from stayer_operator.core.sidecars import refusal, sidecar_message


@pytest.mark.parametrize(
    ("sidecar", "reason"),
    [
        pytest.param(
            waiting(
                "recorder",
                "CrashLoopBackOff",
                lastState=ended(4, message=said("error", reason="UserNamespaceNotEnforced")),
                restartCount=1,
            ),
            Reason.USER_NAMESPACE_NOT_ENFORCED,
            id="it says so in the life before this one",
        ),
        pytest.param(
            terminated("recorder", 4, message="not JSON"),
            Reason.ISOLATION_NOT_ENFORCED,
            id="exit code 4 without words",
        ),
        pytest.param(running("recorder"), None, id="it runs"),
        pytest.param(terminated("recorder", 1), None, id="another failure"),
    ],
)
def test_sidecar_refuses_where_isolation_is_missing(
    sidecar: dict[str, Any], reason: Reason | None
) -> None:
    found = refusal(pod_view(make_raw_pod(phase="Pending", inits=[sidecar])))

    assert (found.reason if found else None) == reason


@pytest.mark.parametrize(
    ("restarts", "code", "cause"),
    [
        pytest.param(3, 1, None, id="restarted as often as it may be"),
        pytest.param(4, 1, Cause.SIDECAR_FAILED, id="restarted too often"),
        pytest.param(4, 5, Cause.STORE_UNREACHABLE, id="restarted too often without a store"),
        pytest.param(1, 3, Cause.FENCED, id="fenced: a restart cannot help"),
    ],
)
def test_sidecar_that_restarts_for_ever_is_given_up(
    restarts: int, code: int, cause: Cause | None
) -> None:
    sidecar = running("recorder", restartCount=restarts, lastState=ended(code))
    pod = pod_view(make_raw_pod(inits=[sidecar], containers=[running("task")]))

    end = failures.broken_sidecar(pod, 3)

    assert (end.cause if end else None) == cause


def test_message_of_the_life_before_counts() -> None:
    sidecar = running(
        "adjudicator", restartCount=1, lastState=ended(0, message=said("results", valid=True))
    )
    pod = pod_view(make_raw_pod(Role.ADJUDICATOR, inits=[sidecar]))

    found = sidecar_message(pod, "results")

    assert found is not None
    assert found.valid is True


@pytest.mark.parametrize("text", ["", "{", '{"kind": "results", "score": 1}', '{"kind": "win"}'])
def test_message_that_is_none_is_passed_over(text: str) -> None:
    pod = pod_view(make_raw_pod(inits=[terminated("recorder", 0, message=text)]))

    assert sidecar_message(pod, "end", "results", "error") is None


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            waiting("task", "ImagePullBackOff", 'Back-off pulling image "x"'),
            'task: ImagePullBackOff: Back-off pulling image "x"',
        ),
        (waiting("task", "PodInitializing"), None),
        (running("task"), None),
    ],
)
def test_start_trouble_is_told_in_the_kubelets_words(
    status: dict[str, Any], told: str | None
) -> None:
    assert failures.start_trouble(pod_view(make_raw_pod(containers=[status]))) == told
