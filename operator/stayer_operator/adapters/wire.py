"""JSON of the API server, decoded as far as somebody reads it.

A pod is 16 KB, and a twentieth of it is looked at (`core/projection.py`): the rest is passed over
without making objects of it, which takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import msgspec

Decode = Callable[[bytes], Any]
"""Bytes to a document. Raises msgspec.DecodeError for what is no JSON."""

T = TypeVar("T")


class _Owner(TypedDict, total=False):
    uid: str
    name: str
    controller: bool | None


class _Metadata(TypedDict, total=False):
    name: str
    namespace: str
    uid: str
    resourceVersion: str
    generation: int | None
    creationTimestamp: str | None
    deletionTimestamp: str | None
    deletionGracePeriodSeconds: int | None
    labels: dict[str, str] | None
    ownerReferences: list[_Owner] | None


class _PodSpec(TypedDict, total=False):
    nodeName: str | None


class _Condition(TypedDict, total=False):
    type: str
    status: str
    reason: str | None
    message: str | None
    lastTransitionTime: str | None


class _State(TypedDict, total=False):
    waiting: dict[str, Any] | None
    running: dict[str, Any] | None
    terminated: dict[str, Any] | None


class _ContainerStatus(TypedDict, total=False):
    name: str
    started: bool | None
    restartCount: int | None
    state: _State | None
    lastState: _State | None


class _PodStatus(TypedDict, total=False):
    phase: str | None
    reason: str | None
    message: str | None
    startTime: str | None
    conditions: list[_Condition] | None
    initContainerStatuses: list[_ContainerStatus] | None
    containerStatuses: list[_ContainerStatus] | None


class _Pod(TypedDict, total=False):
    kind: str
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus


class _Trial(TypedDict, total=False):
    kind: str
    metadata: _Metadata
    spec: dict[str, Any]
    status: dict[str, Any]


# `continue` cannot be a field of a class.
_ListMetadata = TypedDict(
    "_ListMetadata", {"resourceVersion": str, "continue": str | None}, total=False
)


class _PodList(TypedDict, total=False):
    metadata: _ListMetadata
    items: list[_Pod]


class _TrialList(TypedDict, total=False):
    metadata: _ListMetadata
    items: list[_Trial]


class _PodEvent(TypedDict, total=False):
    type: str
    object: _Pod


class _TrialEvent(TypedDict, total=False):
    type: str
    object: _Trial


anything: Decode = msgspec.json.decode


def _reading(shape: type[T]) -> Decode:
    """What is of another shape, such as an error's Status or a field that is not as documented, is
    decoded whole: what a server sends is never a reason to fail.
    """
    decoder = msgspec.json.Decoder(shape)

    def decode(data: bytes) -> Mapping[str, Any]:
        try:
            found: Any = decoder.decode(data)
        except msgspec.ValidationError:
            found = anything(data)
        whole: Mapping[str, Any] = found
        return whole

    return decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoders:
    """For one kind of object: itself, a page of a LIST, an event of a WATCH."""

    one: Decode
    page: Decode
    event: Decode


PODS = Decoders(one=_reading(_Pod), page=_reading(_PodList), event=_reading(_PodEvent))
TRIALS = Decoders(one=_reading(_Trial), page=_reading(_TrialList), event=_reading(_TrialEvent))
WHOLE = Decoders(one=anything, page=anything, event=anything)
