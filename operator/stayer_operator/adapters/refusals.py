"""Turns the API server's refusals into typed errors."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson

from stayer_operator.errors import (
    AlreadyExists,
    ClusterError,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    QuotaExceeded,
)

_BY_STATUS: dict[int, type[ClusterError]] = {
    400: Invalid,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}
LONGEST_MESSAGE = 1000


def refusal(status: int, body: bytes, request: str) -> ClusterError:
    """The error for an answer of 400 or more; `request` says what was asked."""
    said = _parse(body)
    message = str(said.get("message") or body[:200].decode(errors="replace"))[:LONGEST_MESSAGE]
    kind = _BY_STATUS.get(status, ClusterUnavailable)
    if kind is Conflict and said.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    # Quota has no reason of its own (k8s.io/apiserver admission/resourcequota: "exceeded quota").
    if kind is Forbidden and "exceeded quota" in message:
        kind = QuotaExceeded
    return kind(f"{request}: {status} {message}", status=status)


def retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Seconds that the server asks us to wait; None when it does not and the answer is final."""
    if response.status not in (429, 503):
        return None
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return max(0.1, float(text))
    return 1.0 if response.status == 429 else None


def _parse(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
