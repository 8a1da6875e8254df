"""A cluster's token issuer, tokens, trial documents and a relay for tests."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette

from stayer_evaluator.records.outcomes import TrialKind
from stayer_evaluator.records.trial import TaskReference, TrialDocument
from stayer_evaluator.relay.app import Relay, make_app
from stayer_evaluator.relay.metrics import RelayMetrics
from stayer_evaluator.relay.tokens import (
    ClusterKeys,
    KeysUnavailable,
    TokenVerifier,
    parse_keys,
)
from stayer_evaluator.storage.store import ObjectStore

ISSUER = "https://kubernetes.default.svc"
NAMESPACE = "lab"
TRIAL = "demo-0123456789"
AGENT_PREFIX = f"runs/{NAMESPACE}/demo-1a2b3c4d/{TRIAL}/"
DIGEST = "d" * 64


class Issuer:
    """Signs tokens as an API server does. Keys are made once: it takes a while."""

    _keys: dict[str, rsa.RSAPrivateKey] = {}  # noqa: RUF012 (shared on purpose)

    def __init__(self, *kids: str) -> None:
        self.kids = list(kids or ("first",))

    def key(self, kid: str) -> rsa.RSAPrivateKey:
        if kid not in self._keys:
            self._keys[kid] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self._keys[kid]

    def document(self) -> dict[str, Any]:
        found = []
        for kid in self.kids:
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key(kid).public_key()))
            found.append({**public, "kid": kid, "alg": "RS256", "use": "sig"})
        return {"keys": found}


class IssuerKeys:
    """A KeySource that reads the issuer directly and counts how often it is asked."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.fetched = 0
        self.broken = False

    async def fetch(self) -> ClusterKeys:
        self.fetched += 1
        if self.broken:
            raise KeysUnavailable("the API server is away")
        return parse_keys(ISSUER, self.issuer.document())


@dataclass
class Claims:
    """What a token says; the defaults are those of a good agent pod."""

    namespace: str = NAMESPACE
    pod: str = f"{TRIAL}-a-1"
    account: str = "stayer-trial"
    audience: str = "stayer"
    issuer: str = ISSUER
    lives: float = 3600
    kid: str = "first"
    bound: bool = True


def make_token(issuer: Issuer, claims: Claims | None = None, **changes: Any) -> str:
    claims = claims or Claims(**changes)
    cluster: dict[str, Any] = {
        "namespace": claims.namespace,
        "serviceaccount": {"name": claims.account, "uid": "sa-uid"},
    }
    if claims.bound:
        cluster["pod"] = {"name": claims.pod, "uid": "pod-uid"}
    body = {
        "iss": claims.issuer,
        "aud": [claims.audience],
        "exp": time.time() + claims.lives,
        "iat": time.time() - 10,
        "sub": f"system:serviceaccount:{claims.namespace}:{claims.account}",
        "kubernetes.io": cluster,
    }
    key = issuer.key(claims.kid)
    return jwt.encode(body, key, algorithm="RS256", headers={"kid": claims.kid})


def make_document(**changes: Any) -> TrialDocument:
    fields: dict[str, Any] = {
        "namespace": NAMESPACE,
        "run": "demo",
        "run_uid": "1a2b3c4d-0000",
        "trial": TRIAL,
        "prefix": AGENT_PREFIX,
        "task": TaskReference(name="small", digest=DIGEST, image="registry/task@sha256:0"),
        "kind": TrialKind.ATTEMPT,
    }
    return TrialDocument(**{**fields, **changes})


def public_document() -> bytes:
    return make_document().to_bytes()


def make_relay_app(
    store: ObjectStore, issuer: Issuer | None = None, *, max_object: int = 64 * 1024**2
) -> tuple[Starlette, Issuer]:
    """A relay over `store` that trusts `issuer`."""
    issuer = issuer or Issuer()
    verifier = TokenVerifier(IssuerKeys(issuer), service_account="stayer-trial")
    relay = Relay(store, verifier, RelayMetrics(), max_object=max_object)

    async def ready() -> str:
        return ""

    return make_app(relay, ready), issuer
