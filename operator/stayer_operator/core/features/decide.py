"""Which probe pod comes next, and what the ones that have ended say together.

A probe pod is one variant of how a trial pod could be made: the runner from an image volume or
copied by an init container, with users of its own or the node's. They are tried in order, the best
first; the first one whose runner ran decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

Delivery: TypeAlias = Literal["image-volume", "init-copy"]


class Variant(NamedTuple):
    """How a probe pod is made."""

    delivery: Delivery
    own_users: bool  # hostUsers: false


class Outcome(StrEnum):
    """What became of a probe pod."""

    WAITING = "waiting"  # not known yet
    RAN = "ran"  # the runner ran from where it was mounted
    DID_NOT_RUN = "did-not-run"  # refused by the API server or the runtime, or never started
    FORBIDDEN = "forbidden"  # by an admission plugin, perhaps for another reason
    UNCLEAR = "unclear"  # something else was in its way: no node, no image, a quota
    LOST = "lost"  # ended from outside; another try is worth it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is known of one variant. `message` says why, for people."""

    outcome: Outcome
    own_users: bool = False  # with RAN: its root is not the node's root
    message: str = ""


class Source(StrEnum):
    """Why a feature is believed in."""

    SETTING = "setting"
    PROBE = "probe"
    ASSUMED = "assumed"  # the probe could tell nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the installation sets; None: to be found out."""

    delivery: Delivery | None = None
    user_namespaces: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What trial pods are made with. `message` says how it is known, for people."""

    delivery: Delivery
    delivery_source: Source
    user_namespaces: bool
    user_namespaces_source: Source
    message: str = ""

    @property
    def no_user_namespaces(self) -> str:
        """Why pods get none; empty where they do."""
        if self.user_namespaces:
            return ""
        if self.user_namespaces_source is Source.SETTING:
            return "trials.userNamespaces is false in this installation"
        return f"the operator's probe pod got none: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """Create the probe pod of this variant."""

    variant: Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """For this variant's pod."""

    variant: Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """It is known."""

    features: Features


Step: TypeAlias = Try | Wait | Decided

VOLUME, COPY = Variant("image-volume", True), Variant("init-copy", True)
VOLUME_WITHOUT = Variant("image-volume", False)
EVERY = (VOLUME, COPY, VOLUME_WITHOUT)


def variants(wanted: Wanted) -> tuple[Variant, ...]:
    """What is worth trying, in order. Empty: nothing is left to find out.

    A pod with users of its own that does not start may be short of either feature, so the copy
    tells about the users, and a last pod about the volume alone.
    """
    delivery, users = wanted.delivery, wanted.user_namespaces
    if delivery is not None:
        return () if users is not None else (Variant(delivery, True),)
    if users is not None:
        return (Variant("image-volume", users),)
    return EVERY


def decide(wanted: Wanted, findings: Mapping[Variant, Finding]) -> Step:
    """The next step. Total; a variant without a finding was not tried yet."""
    order = variants(wanted)
    failed: list[Finding] = []
    for variant in order:
        finding = findings.get(variant)
        if finding is None or finding.outcome is Outcome.LOST:
            return Try(variant=variant)
        match finding.outcome:
            case Outcome.WAITING:
                return Wait(variant=variant)
            case Outcome.UNCLEAR:
                return Decided(features=assume(wanted, finding.message))
            case Outcome.RAN:
                return Decided(features=_ran(wanted, variant, finding, failed))
            case Outcome.DID_NOT_RUN | Outcome.FORBIDDEN:
                failed.append(finding)
    if failed and all(finding.outcome is Outcome.FORBIDDEN for finding in failed):
        return Decided(features=assume(wanted, failed[-1].message))
    return Decided(features=_known(wanted, "init-copy", False, _together(failed)))


def assume(wanted: Wanted, why: str) -> Features:
    """Where the probe can tell nothing: the delivery that works everywhere, and user namespaces,
    whose absence every sidecar finds out by itself.
    """
    return _known(wanted, "init-copy", True, why, Source.ASSUMED)


def _ran(wanted: Wanted, variant: Variant, finding: Finding, failed: list[Finding]) -> Features:
    users = variant.own_users and finding.own_users
    return _known(wanted, variant.delivery, users, _together([*failed, finding]))


def _together(findings: list[Finding]) -> str:
    return "; ".join(finding.message for finding in findings if finding.message)


def _known(
    wanted: Wanted, delivery: Delivery, users: bool, message: str, source: Source = Source.PROBE
) -> Features:
    """What was found, but for what is set."""
    return Features(
        delivery=wanted.delivery or delivery,
        delivery_source=Source.SETTING if wanted.delivery else source,
        user_namespaces=users if wanted.user_namespaces is None else wanted.user_namespaces,
        user_namespaces_source=source if wanted.user_namespaces is None else Source.SETTING,
        message=message,
    )
