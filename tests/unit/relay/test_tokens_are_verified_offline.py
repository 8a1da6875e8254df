"""Projected service-account tokens: which are believed, and how keys are kept."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt
import pytest

from makers_relay import ISSUER, Claims, Issuer, IssuerKeys, make_token
from stayer_evaluator.records.outcomes import Role
from stayer_evaluator.relay.tokens import (
    Identity,
    KeysUnavailable,
    TokenRejected,
    TokenVerifier,
    parse_keys,
    trial_pod,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_verifier(issuer: Issuer) -> tuple[TokenVerifier, IssuerKeys, Clock]:
    source, clock = IssuerKeys(issuer), Clock()
    return TokenVerifier(source, service_account="stayer-trial", clock=clock), source, clock


def test_a_good_token_names_its_pod() -> None:
    issuer = Issuer()
    verifier, _, _ = make_verifier(issuer)

    identity = asyncio.run(verifier.verify(make_token(issuer)))

    assert identity == Identity("lab", "demo-0123456789-a-1", "pod-uid", "stayer-trial")


BAD: list[tuple[str, dict[str, Any]]] = [
    ("of another audience", {"audience": "https://kubernetes.default.svc"}),
    ("expired", {"lives": -60}),
    ("of another issuer", {"issuer": "https://elsewhere"}),
    ("of another service account", {"account": "default"}),
    ("bound to no pod", {"bound": False}),
]


@pytest.mark.parametrize("changes", [pytest.param(c, id=i) for i, c in BAD])
def test_a_bad_token_is_rejected(changes: dict[str, Any]) -> None:
    issuer = Issuer()
    verifier, _, _ = make_verifier(issuer)

    with pytest.raises(TokenRejected):
        asyncio.run(verifier.verify(make_token(issuer, Claims(**changes))))


def test_a_token_signed_by_somebody_else_under_a_known_key_id_is_rejected() -> None:
    issuer = Issuer("first")
    verifier, _, _ = make_verifier(issuer)
    body = {"iss": ISSUER, "aud": "stayer", "exp": 9_999_999_999}
    forged = jwt.encode(body, issuer.key("other"), "RS256", headers={"kid": "first"})

    with pytest.raises(TokenRejected):
        asyncio.run(verifier.verify(forged))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
def test_rubbish_is_rejected_without_asking_for_keys(token: str) -> None:
    verifier, source, _ = make_verifier(Issuer())

    with pytest.raises(TokenRejected):
        asyncio.run(verifier.verify(token))
    assert source.fetched == 0


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_weak_algorithms_are_rejected(algorithm: str) -> None:
    verifier, _, _ = make_verifier(Issuer())
    key = "" if algorithm == "none" else "k" * 64
    body = {"iss": ISSUER, "aud": "stayer", "exp": 9_999_999_999}
    token = jwt.encode(body, key, algorithm, headers={"kid": "first"})

    with pytest.raises(TokenRejected):
        asyncio.run(verifier.verify(token))


def test_keys_are_fetched_once_and_again_for_an_unknown_key_but_not_for_every_one() -> None:
    issuer = Issuer("first")
    verifier, source, clock = make_verifier(issuer)

    async def scenario() -> None:
        await verifier.verify(make_token(issuer))
        await verifier.verify(make_token(issuer))
        assert source.fetched == 1
        for _ in range(5):  # unknown keys within ten seconds
            with pytest.raises(TokenRejected):
                await verifier.verify(make_token(issuer, kid="second"))
        assert source.fetched == 1
        issuer.kids.append("second")
        clock.now += 11
        await verifier.verify(make_token(issuer, kid="second"))
        assert source.fetched == 2

    asyncio.run(scenario())


def test_known_keys_serve_while_the_api_server_is_away() -> None:
    issuer = Issuer("first")
    verifier, source, clock = make_verifier(issuer)

    async def scenario() -> None:
        source.broken = True
        with pytest.raises(KeysUnavailable):
            await verifier.ready()
        source.broken = False
        await verifier.ready()
        source.broken = True
        clock.now += 3600
        await verifier.verify(make_token(issuer))
        with pytest.raises(TokenRejected):
            await verifier.verify(make_token(issuer, kid="second"))

    asyncio.run(scenario())


def test_keys_of_unknown_kinds_are_passed_over() -> None:
    document = Issuer("first").document()
    document["keys"] += [{"kid": "odd", "kty": "moon"}, {"kty": "RSA"}]

    assert list(parse_keys(ISSUER, document).keys) == ["first"]


@pytest.mark.parametrize(
    ("pod", "trial", "role", "incarnation"),
    [
        ("demo-0123456789-a-1", "demo-0123456789", Role.AGENT, 1),
        ("a-b-1-b-12", "a-b-1", Role.ADJUDICATOR, 12),
        ("x.y-a-1-a-2", "x.y-a-1", Role.AGENT, 2),
    ],
)
def test_pod_names_are_read(pod: str, trial: str, role: Role, incarnation: int) -> None:
    found = trial_pod(Identity("lab", pod, "uid", "stayer-trial"))

    assert (found.trial, found.role, found.incarnation) == (trial, role, incarnation)


@pytest.mark.parametrize(
    "pod",
    ["demo", "demo-c-1", "demo-a-0", "demo-a-", "-a-1", "demo-a-01", "demo-a-1-x", "demo-a-1\n"],
)
def test_other_pods_are_rejected(pod: str) -> None:
    with pytest.raises(TokenRejected):
        trial_pod(Identity("lab", pod, "uid", "stayer-trial"))
