"""Kubernetes quantities and the resources of a task container."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eE][+-]?[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}


def parse_quantity(text: str) -> Fraction:
    """The value of a quantity such as 250m, 1.5Gi or 2e3. Raises ValueError for anything else."""
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity")
    number, exponent, suffix = match.groups()
    return Fraction(number + (exponent or "")) * _SUFFIXES[suffix or ""]


def merge_resources(
    defaults: Mapping[str, Mapping[str, str]], wanted: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """The defaults with a template's wishes over them, such that the API accepts the sum.

    A limit given without a request is the request too, as Kubernetes has it; a request above the
    default limit raises the limit. Every resource of the defaults keeps a limit.
    """
    requests = {name: str(value) for name, value in (wanted.get("requests") or {}).items()}
    limits = {name: str(value) for name, value in (wanted.get("limits") or {}).items()}
    merged_requests = {**defaults["requests"], **limits, **requests}
    merged_limits = {**defaults["limits"], **limits}
    for name, request in requests.items():
        limit = merged_limits.get(name)
        if name not in limits and (limit is None or _exceeds(request, limit)):
            merged_limits[name] = request
    return {"requests": merged_requests, "limits": merged_limits}


def _exceeds(request: str, limit: str) -> bool:
    try:
        return parse_quantity(request) > parse_quantity(limit)
    except ValueError:
        return False  # the API server says what is wrong with it
