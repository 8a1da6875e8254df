"""What the API server would refuse in pods made from a run's podTemplates. Pure.

A schema says what kind of value a field holds; the texts have syntaxes of their own.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from fractions import Fraction

from stayer_operator.api.pods import PodTemplate, Resources, Toleration
from stayer_operator.api.run import RunSpec
from stayer_operator.core.pods.quantities import parse_quantity
from stayer_operator.core.run.problems import Problem, shown

STANDARD = ("cpu", "memory", "ephemeral-storage")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY = "a label's key: letters, digits, -, _ and ., with a DNS name and / before it or without"
_VALUE = "a label's value: at most 63 letters, digits, -, _ and ., or nothing"


def template_problems(spec: RunSpec) -> Iterator[Problem]:
    """Of both roles' templates, all that would make the API server refuse their pods."""
    for role, template in (
        ("agent", spec.pod_templates.agent),
        ("adjudicator", spec.pod_templates.adjudicator),
    ):
        yield from _template(f"spec.podTemplates.{role}", template)


def _template(field: str, template: PodTemplate) -> Iterator[Problem]:
    yield from _resources(f"{field}.resources", template.resources)
    for key, value in template.node_selector.items():
        if not is_qualified(key):
            yield Problem(field=f"{field}.nodeSelector", found=shown(key), accepted=_KEY)
        if not is_label_value(value):
            place = f"{field}.nodeSelector[{key}]"
            yield Problem(field=place, found=shown(value), accepted=_VALUE)
    for index, toleration in enumerate(template.tolerations):
        yield from _toleration(f"{field}.tolerations[{index}]", toleration)


def _resources(field: str, resources: Resources) -> Iterator[Problem]:
    requests = yield from _amounts(f"{field}.requests", resources.requests)
    limits = yield from _amounts(f"{field}.limits", resources.limits)
    for name in sorted(requests.keys() & limits.keys()):
        if requests[name] > limits[name]:
            yield Problem(
                field=f"{field}.requests.{name}",
                found=shown(resources.requests[name]),
                accepted=f"at most its limit, {resources.limits[name]}",
            )


def _amounts(
    field: str, amounts: Mapping[str, str | int]
) -> Generator[Problem, None, dict[str, Fraction]]:
    """Returns those that are good."""
    good: dict[str, Fraction] = {}
    for name, text in amounts.items():
        if not _is_resource(name):
            accepted = (
                f"{', '.join(STANDARD)}, hugepages-… or a name with its domain: nvidia.com/gpu"
            )
            yield Problem(field=field, found=shown(name), accepted=accepted)
            continue
        try:
            amount = parse_quantity(str(text))
        except ValueError:
            amount = Fraction(-1)
        if amount < 0:
            accepted = "a quantity that is not negative, such as 500m, 2 or 1.5Gi"
            yield Problem(field=f"{field}.{name}", found=shown(text), accepted=accepted)
        else:
            good[name] = amount
    return good


def _toleration(field: str, toleration: Toleration) -> Iterator[Problem]:
    key, value = toleration.key, toleration.value
    if key and not is_qualified(key):
        yield Problem(field=f"{field}.key", found=shown(key), accepted=_KEY)
    if not key and toleration.operator != "Exists":
        accepted = "a key; without one only operator Exists"
        yield Problem(field=f"{field}.key", found=shown(key), accepted=accepted)
    if value and toleration.operator == "Exists":
        accepted = "no value with operator Exists"
        yield Problem(field=f"{field}.value", found=shown(value), accepted=accepted)
    elif value and not is_label_value(value):
        yield Problem(field=f"{field}.value", found=shown(value), accepted=_VALUE)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield Problem(
            field=f"{field}.effect",
            found=shown(toleration.effect),
            accepted="NoExecute, as tolerationSeconds is set",
        )


def _is_resource(name: str) -> bool:
    if name in STANDARD:
        return True
    if name.startswith("hugepages-"):
        return _is_amount(name.removeprefix("hugepages-"))
    return "/" in name and is_qualified(name)


def _is_amount(text: str) -> bool:
    try:
        return parse_quantity(text) > 0
    except ValueError:
        return False


def is_qualified(text: str) -> bool:
    """Whether a text may be a label's key."""
    domain, slash, name = text.rpartition("/")
    if slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether a text may be a label's value."""
    return not text or _NAME.fullmatch(text) is not None
