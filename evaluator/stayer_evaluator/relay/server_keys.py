"""The cluster's public keys, read from the API server.

Apart from `tokens.py`, which the operator uses with a client of its own: httpx would
take memory there.
"""

import ssl
from pathlib import Path
from typing import Any

import httpx
import jwt

from stayer_evaluator.relay.tokens import ClusterKeys, KeysUnavailable, parse_keys

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API_SERVER = "https://kubernetes.default.svc"


class ApiServerKeys:
    """Keys from the API server's discovery documents, read with the own pod's account."""

    def __init__(self, url: str = API_SERVER, account: Path = ACCOUNT) -> None:
        self._url = url
        self._account = account

    async def fetch(self) -> ClusterKeys:
        try:
            token = (self._account / "token").read_text().strip()
            context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(
                base_url=self._url, verify=context, headers=headers, timeout=10.0
            ) as client:
                discovery = await _document(client, "/.well-known/openid-configuration")
                found = await _document(client, "/openid/v1/jwks")
            return parse_keys(str(discovery["issuer"]), found)
        except (OSError, httpx.HTTPError, KeyError, ValueError, jwt.PyJWTError) as error:
            raise KeysUnavailable(f"{type(error).__name__}: {error}") from error


async def _document(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    answer.raise_for_status()
    return answer.json()
