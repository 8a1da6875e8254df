"""The progress endpoint over HTTP with tokens that are really signed and verified."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from makers_operator_shell import QUICK, FakeApiServer, serve
from stayer_evaluator.relay.tokens import TokenVerifier
from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.connection import Connection
from stayer_operator.adapters.token_keys import ClientKeys
from stayer_operator.adapters.web import serving
from stayer_operator.core.observed import ObjectKey
from stayer_operator.progress.book import ProgressBook
from stayer_operator.progress.endpoint import PATH, ProgressEndpoint

ISSUER = "https://kubernetes.default.svc"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
TRIAL = ObjectKey("lab", "demo-0123456789")
Post = Callable[..., Awaitable[int]]


def sign(**changes: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": ["stayer"],
        "exp": time.time() + 600,
        "kubernetes.io": {
            "namespace": "lab",
            "pod": {"name": f"{TRIAL.name}-a-1", "uid": "p"},
            "serviceaccount": {"name": "stayer-trial"},
        },
    } | changes
    return jwt.encode(claims, KEY, algorithm="RS256", headers={"kid": "k1"})


def api_with_keys() -> FakeApiServer:
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())) | {"kid": "k1"}
    answers = {
        "/.well-known/openid-configuration": {"issuer": ISSUER},
        "/openid/v1/jwks": {"keys": [key]},
    }

    async def handle(request: web.Request) -> web.Response:
        # As the real one does: the keys have a media type of their own and are refused otherwise.
        kind = "application/jwk-set+json" if "jwks" in request.path else "application/json"
        if kind not in request.headers["Accept"]:
            return web.Response(status=406, text=f"Available representations: {kind}")
        return web.json_response(answers[request.path], content_type=kind)

    server = FakeApiServer()
    server.handle = handle  # type: ignore[method-assign]
    return server


def with_endpoint(scenario: Callable[[Post, ProgressBook], Awaitable[None]]) -> None:
    async def main() -> None:
        book = ProgressBook(lambda key: key == TRIAL)
        async with serve(api_with_keys()) as address:
            client = ApiClient(Connection(server=address, tls=None), QUICK)
            verifier = TokenVerifier(ClientKeys(client), service_account="stayer-trial")
            endpoint = ProgressEndpoint(book, verifier)
            async with (
                serving(endpoint.application(), 0, "127.0.0.1") as port,
                aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
            ):

                async def post(token: str | None, body: bytes | None = None, **report: Any) -> int:
                    said = {"trial": TRIAL.name, "role": "a", "incarnation": 1} | report
                    headers = {"Authorization": f"Bearer {token}"} if token else {}
                    data = json.dumps(said).encode() if body is None else body
                    async with session.post(PATH, data=data, headers=headers) as response:
                        return response.status

                await scenario(post, book)
            await client.close()

    asyncio.run(main())


def test_a_report_about_oneself_is_taken() -> None:
    async def scenario(post: Post, book: ProgressBook) -> None:
        assert await post(sign(), snapshots_taken=3) == 204
        progress = book.progress(TRIAL)
        assert progress is not None
        assert progress.snapshots_taken == 3

    with_endpoint(scenario)


def test_a_pod_whose_trial_is_gone_hears_so() -> None:
    async def scenario(post: Post, book: ProgressBook) -> None:
        trial = "demo-9999999999"
        pod = {"name": f"{trial}-a-1", "uid": "p"}
        account = {"name": "stayer-trial"}
        claims = {"namespace": "lab", "pod": pod, "serviceaccount": account}
        assert await post(sign(**{"kubernetes.io": claims}), trial=trial) == 410
        assert book.progress(ObjectKey("lab", trial)) is None

    with_endpoint(scenario)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"trial": "demo-9999999999"}, 403),
        ({"role": "b"}, 403),
        ({"incarnation": 2}, 403),
        ({"body": b"not json"}, 400),
        ({"colour": "red"}, 400),
        ({"body": b"x" * 20_000}, 413),
    ],
    ids=["another-trial", "another-role", "another-life", "no-json", "unknown-field", "too-large"],
)
def test_a_false_report_is_refused(report: dict[str, Any], expected: int) -> None:
    async def scenario(post: Post, book: ProgressBook) -> None:
        assert await post(sign(), **report) == expected
        assert book.progress(TRIAL) is None

    with_endpoint(scenario)


@pytest.mark.parametrize(
    "token",
    [
        None,
        "nonsense",
        sign(aud=["other"]),
        sign(exp=time.time() - 3600),
        sign(iss="https://elsewhere"),
        sign(
            **{
                "kubernetes.io": {
                    "namespace": "lab",
                    "pod": {"name": f"{TRIAL.name}-a-1", "uid": "p"},
                    "serviceaccount": {"name": "default"},
                }
            }
        ),
    ],
    ids=["none", "nonsense", "audience", "expired", "issuer", "account"],
)
def test_without_a_valid_token_of_a_trial_nobody_reports(token: str | None) -> None:
    async def scenario(post: Post, book: ProgressBook) -> None:
        assert await post(token) == 401
        assert book.progress(TRIAL) is None

    with_endpoint(scenario)
