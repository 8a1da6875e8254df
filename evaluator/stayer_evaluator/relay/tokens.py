"""Projected service-account tokens, verified offline against the cluster's public keys.

The operator's progress endpoint verifies the same tokens with the same code.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jwt

from stayer_evaluator.records import places
from stayer_evaluator.records.outcomes import Role

ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
LEEWAY_SECONDS = 30
REFRESH_SECONDS = 10.0
"""At most one look for new keys in this time, whatever tokens are thrown at us."""
POD_NAME = re.compile(r"(?P<trial>[a-z0-9][a-z0-9.-]*)-(?P<role>[ab])-(?P<incarnation>[1-9][0-9]*)")


class TokenRejected(Exception):  # noqa: N818 (reads as what happened)
    """The token proves nothing; the message says why and holds no part of it."""


class KeysUnavailable(Exception):  # noqa: N818
    """The cluster's public keys could not be read: the caller may try again."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls: the pod that its kubelet made the token for."""

    namespace: str
    pod: str
    pod_uid: str
    service_account: str


@dataclass(frozen=True, slots=True)
class TrialPod:
    """A pod of a trial, read from its name `<trial>-<a|b>-<incarnation>`."""

    namespace: str
    trial: str
    role: Role
    incarnation: int


@dataclass(frozen=True, slots=True)
class ClusterKeys:
    """The issuer of a cluster and its public keys by key id."""

    issuer: str
    keys: Mapping[str, jwt.PyJWK]


class KeySource(Protocol):
    """Where public keys come from."""

    async def fetch(self) -> ClusterKeys:
        """The keys as they are now. Raises KeysUnavailable."""


def parse_keys(issuer: str, document: Any) -> ClusterKeys:
    """Keys of a JWKS document; keys of unknown kinds are passed over."""
    keys = {}
    for item in document["keys"]:
        try:
            keys[str(item["kid"])] = jwt.PyJWK(item)
        except (KeyError, jwt.PyJWTError):
            continue
    return ClusterKeys(issuer, keys)


class TokenVerifier:
    """Verifies tokens of one audience from one service account."""

    def __init__(
        self,
        source: KeySource,
        *,
        service_account: str,
        audience: str = places.AUDIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._service_account = service_account
        self._audience = audience
        self._clock = clock
        self._known: ClusterKeys | None = None
        self._asked = -REFRESH_SECONDS
        self._lock = asyncio.Lock()

    async def verify(self, token: str) -> Identity:
        """Who the bearer is. Raises TokenRejected, KeysUnavailable."""
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError as error:
            raise TokenRejected("not a token") from error
        if not isinstance(kid, str):
            raise TokenRejected("names no key")
        known = await self._keys(kid)
        key = known.keys.get(kid)
        if key is None:
            raise TokenRejected("signed with an unknown key")
        return self._identity(self._claims(token, key, known.issuer))

    async def ready(self) -> None:
        """Make sure that keys are at hand. Raises KeysUnavailable."""
        if self._known is None:
            await self._keys("")

    async def _keys(self, kid: str) -> ClusterKeys:
        """The known keys; read anew, but not too often, when `kid` is not among them."""
        async with self._lock:
            if self._known is not None and (
                kid in self._known.keys or self._clock() < self._asked + REFRESH_SECONDS
            ):
                return self._known
            self._asked = self._clock()
            try:
                self._known = await self._source.fetch()
            except KeysUnavailable:
                if self._known is None:
                    raise
            return self._known

    def _claims(self, token: str, key: jwt.PyJWK, issuer: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise TokenRejected(f"{type(error).__name__}: {error}") from error

    def _identity(self, claims: dict[str, Any]) -> Identity:
        cluster = claims.get("kubernetes.io")
        try:
            identity = Identity(
                namespace=_text(cluster, "namespace"),
                pod=_text(cluster, "pod", "name"),
                pod_uid=_text(cluster, "pod", "uid"),
                service_account=_text(cluster, "serviceaccount", "name"),
            )
        except (KeyError, TypeError) as error:
            raise TokenRejected("not bound to a pod") from error
        if identity.service_account != self._service_account:
            raise TokenRejected(f"service account {identity.service_account!r} is not a trial's")
        return identity


def trial_pod(identity: Identity) -> TrialPod:
    """The trial's pod behind an identity. Raises TokenRejected for any other pod."""
    match = POD_NAME.fullmatch(identity.pod)
    if match is None:
        raise TokenRejected(f"pod {identity.pod!r} is no pod of a trial")
    role = Role(match["role"])
    return TrialPod(identity.namespace, match["trial"], role, int(match["incarnation"]))


def _text(document: Any, *path: str) -> str:
    for name in path:
        document = document[name]
    if not isinstance(document, str) or not document:
        raise TypeError
    return document
