"""podTemplates that the API server would refuse in every pod are refused in the run."""

from typing import Any

import pytest

from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.templates import template_problems


def spec(**template: Any) -> RunSpec:
    return RunSpec.model_validate(
        {
            "benchmark": "loops",
            "tasks": {"source": {"s3": {"prefix": "tasksets/x"}}},
            "matrix": {"agents": [{"name": "oracle", "harness": "oracle"}]},
            "podTemplates": {"adjudicator": template},
        }
    )


@pytest.mark.parametrize(
    ("template", "field", "found"),
    [
        ({"resources": {"limits": {"memory": "banana"}}}, "resources.limits.memory", '"banana"'),
        ({"resources": {"requests": {"cpu": -1}}}, "resources.requests.cpu", "-1"),
        ({"resources": {"limits": {"cpu": "1.2.3"}}}, "resources.limits.cpu", '"1.2.3"'),
        ({"resources": {"limits": {"bananas": "1"}}}, "resources.limits", '"bananas"'),
        ({"resources": {"limits": {"hugepages-big": "1"}}}, "resources.limits", '"hugepages-big"'),
        (
            {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}},
            "resources.requests.memory",
            '"2Gi"',
        ),
        ({"nodeSelector": {"bad key!": "x"}}, "nodeSelector", '"bad key!"'),
        ({"nodeSelector": {"Up/disk": "x"}}, "nodeSelector", '"Up/disk"'),
        ({"nodeSelector": {"disk": "a b"}}, "nodeSelector[disk]", '"a b"'),
        ({"nodeSelector": {"disk": "x" * 64}}, "nodeSelector[disk]", f'"{"x" * 64}"'),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists", "value": "yes"}]},
            "tolerations[0].value",
            '"yes"',
        ),
        ({"tolerations": [{"key": "a b", "value": "yes"}]}, "tolerations[0].key", '"a b"'),
        ({"tolerations": [{"value": "yes"}]}, "tolerations[0].key", "nothing"),
        (
            {"tolerations": [{"key": "k", "tolerationSeconds": 5, "effect": "NoSchedule"}]},
            "tolerations[0].effect",
            '"NoSchedule"',
        ),
    ],
)
def test_what_the_server_would_refuse_is_named(template: Any, field: str, found: str) -> None:
    (problem,) = template_problems(spec(**template))

    assert problem.field == f"spec.podTemplates.adjudicator.{field}"
    assert problem.found == found
    assert problem.accepted


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"resources": {"requests": {"cpu": 2, "memory": "1.5Gi"}, "limits": {"cpu": "2"}}},
        {"resources": {"limits": {"nvidia.com/gpu": 1, "ephemeral-storage": "2e3"}}},
        {"resources": {"limits": {"hugepages-2Mi": "4Mi", "memory": "1"}}},
        {"nodeSelector": {"kubernetes.io/arch": "amd64", "pool": "", "a.b_c-d": "x.y_z-1"}},
        {"tolerations": [{"operator": "Exists"}, {"key": "a.b/c", "value": "yes"}]},
        {"tolerations": [{"key": "k", "effect": "NoExecute", "tolerationSeconds": 5}]},
        {"runtimeClassName": "not-there-yet"},
    ],
)
def test_what_the_server_takes_is_taken(template: Any) -> None:
    assert not list(template_problems(spec(**template)))
