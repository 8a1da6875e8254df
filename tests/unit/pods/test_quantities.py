from fractions import Fraction

import pytest

from stayer_operator.core.pods.quantities import merge_resources, parse_quantity

DEFAULTS = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "2Gi"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", Fraction(2)),
        ("250m", Fraction(1, 4)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("2e3", Fraction(2000)),
        ("1E", Fraction(10**18)),
        ("100k", Fraction(100_000)),
        ("64Ki", Fraction(65536)),
    ],
)
def test_quantity_has_its_value(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "lots", "1 Gi", "1GiB", "m"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("wanted", "requests", "limits"),
    [
        pytest.param({}, DEFAULTS["requests"], DEFAULTS["limits"], id="nothing wanted"),
        pytest.param(
            {"limits": {"memory": "8Gi"}},
            {"cpu": "100m", "memory": "8Gi"},
            {"cpu": "2", "memory": "8Gi"},
            id="a limit alone is the request too",
        ),
        pytest.param(
            {"requests": {"cpu": "4", "memory": "1Gi"}},
            {"cpu": "4", "memory": "1Gi"},
            {"cpu": "4", "memory": "2Gi"},
            id="a request above the default limit raises it",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}},
            {"cpu": "100m", "memory": "256Mi", "nvidia.com/gpu": "1"},
            {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"},
            id="a resource that we do not know is limited by its request",
        ),
        pytest.param(
            {"requests": {"cpu": "a lot"}},
            {"cpu": "a lot", "memory": "256Mi"},
            DEFAULTS["limits"],
            id="nonsense is left to the API server",
        ),
    ],
)
def test_template_resources_go_over_the_defaults(
    wanted: dict[str, dict[str, str]], requests: dict[str, str], limits: dict[str, str]
) -> None:
    assert merge_resources(DEFAULTS, wanted) == {"requests": requests, "limits": limits}
