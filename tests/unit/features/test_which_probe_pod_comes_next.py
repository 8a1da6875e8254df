"""Findings → the next probe pod, or what is known."""

from __future__ import annotations

from itertools import product

import pytest

from stayer_operator.core.features.decide import (
    COPY,
    VOLUME,
    VOLUME_WITHOUT,
    Decided,
    Features,
    Finding,
    Outcome,
    Source,
    Try,
    Variant,
    Wait,
    Wanted,
    decide,
    variants,
)

AUTO = Wanted()
OWN = Finding(outcome=Outcome.RAN, own_users=True, message="ran")
HOST = Finding(outcome=Outcome.RAN, own_users=False, message="ran as the node's root")
NO = Finding(outcome=Outcome.DID_NOT_RUN, message="did not run")
FORBIDDEN = Finding(outcome=Outcome.FORBIDDEN, message="forbidden")
UNCLEAR = Finding(outcome=Outcome.UNCLEAR, message="no node")
LOST = Finding(outcome=Outcome.LOST, message="evicted")
WAITING = Finding(outcome=Outcome.WAITING)

Found = dict[Variant, Finding]


@pytest.mark.parametrize(
    ("wanted", "findings", "step"),
    [
        pytest.param(AUTO, {}, Try(variant=VOLUME), id="the volume is tried first"),
        pytest.param(AUTO, {VOLUME: WAITING}, Wait(variant=VOLUME), id="and waited for"),
        pytest.param(AUTO, {VOLUME: LOST}, Try(variant=VOLUME), id="again when it was lost"),
        pytest.param(AUTO, {VOLUME: NO}, Try(variant=COPY), id="then the copy"),
        pytest.param(
            AUTO,
            {VOLUME: NO, COPY: NO},
            Try(variant=VOLUME_WITHOUT),
            id="then the volume without own users, which may have been what was lacking",
        ),
        pytest.param(
            Wanted(user_namespaces=False),
            {},
            Try(variant=VOLUME_WITHOUT),
            id="users that are not wanted are not probed",
        ),
        pytest.param(
            Wanted(delivery="init-copy"), {}, Try(variant=COPY), id="nor is a delivery that is set"
        ),
    ],
)
def test_what_is_done_next(wanted: Wanted, findings: Found, step: object) -> None:
    assert decide(wanted, findings) == step


@pytest.mark.parametrize(
    ("wanted", "findings", "known"),
    [
        pytest.param(AUTO, {VOLUME: OWN}, ("image-volume", True), id="everything works"),
        pytest.param(
            AUTO, {VOLUME: HOST}, ("image-volume", False), id="hostUsers: false is ignored"
        ),
        pytest.param(AUTO, {VOLUME: NO, COPY: OWN}, ("init-copy", True), id="no volumes"),
        pytest.param(AUTO, {VOLUME: FORBIDDEN, COPY: OWN}, ("init-copy", True), id="by policy"),
        pytest.param(
            AUTO, {VOLUME: NO, COPY: HOST}, ("init-copy", False), id="no volumes, users ignored"
        ),
        pytest.param(
            AUTO,
            {VOLUME: NO, COPY: NO, VOLUME_WITHOUT: HOST},
            ("image-volume", False),
            id="volumes without own users",
        ),
        pytest.param(
            AUTO, {VOLUME: NO, COPY: NO, VOLUME_WITHOUT: NO}, ("init-copy", False), id="neither"
        ),
        pytest.param(
            Wanted(delivery="image-volume"),
            {VOLUME: NO},
            ("image-volume", False),
            id="a delivery that is set stays",
        ),
        pytest.param(
            Wanted(user_namespaces=True),
            {VOLUME: NO},
            ("init-copy", True),
            id="users that are set stay",
        ),
        pytest.param(
            Wanted(user_namespaces=False),
            {VOLUME_WITHOUT: HOST},
            ("image-volume", False),
            id="volumes alone are asked for",
        ),
    ],
)
def test_what_is_known(wanted: Wanted, findings: Found, known: tuple[str, bool]) -> None:
    features = decided(wanted, findings)

    assert (features.delivery, features.user_namespaces) == known
    assert (features.delivery_source is Source.SETTING) is (wanted.delivery is not None)
    assert (features.user_namespaces_source is Source.SETTING) is (
        wanted.user_namespaces is not None
    )
    assert all(finding.message in features.message for finding in findings.values())


@pytest.mark.parametrize(
    "findings",
    [
        pytest.param({VOLUME: UNCLEAR}, id="no node"),
        pytest.param({VOLUME: NO, COPY: UNCLEAR}, id="no node for the copy"),
        pytest.param(
            {VOLUME: FORBIDDEN, COPY: FORBIDDEN, VOLUME_WITHOUT: FORBIDDEN},
            id="no pod is let in, whatever it is like",
        ),
    ],
)
def test_what_cannot_be_told_is_assumed_and_refuses_no_run(findings: Found) -> None:
    features = decided(AUTO, findings)

    assert (features.delivery, features.user_namespaces) == ("init-copy", True)
    assert features.delivery_source is features.user_namespaces_source is Source.ASSUMED
    assert features.no_user_namespaces == ""


def test_nothing_is_probed_where_everything_is_set() -> None:
    features = decided(Wanted(delivery="init-copy", user_namespaces=False), {})

    assert (features.delivery, features.user_namespaces) == ("init-copy", False)
    assert "trials.userNamespaces is false" in features.no_user_namespaces


def test_a_run_is_told_what_the_probe_found() -> None:
    features = decided(AUTO, {VOLUME: HOST})

    assert HOST.message in features.no_user_namespaces


def test_every_set_of_findings_leads_on_or_is_decided() -> None:
    kinds = (None, WAITING, OWN, HOST, NO, FORBIDDEN, UNCLEAR, LOST)
    wishes = product((None, "image-volume", "init-copy"), (None, True, False))
    for delivery, users in wishes:
        wanted = Wanted(delivery=delivery, user_namespaces=users)  # type: ignore[arg-type]
        order = variants(wanted)
        for chosen in product(kinds, repeat=len(order)):
            findings = {v: f for v, f in zip(order, chosen, strict=True) if f is not None}
            step = decide(wanted, findings)
            if not isinstance(step, Decided):
                assert findings.get(step.variant) in (None, LOST, WAITING)


def decided(wanted: Wanted, findings: Found) -> Features:
    step = decide(wanted, findings)
    assert isinstance(step, Decided), step
    return step.features
