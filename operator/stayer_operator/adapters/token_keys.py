"""The cluster's public keys for service-account tokens, through our own API client."""

from __future__ import annotations

from stayer_evaluator.relay.tokens import ClusterKeys, KeysUnavailable, parse_keys
from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.errors import ClusterError


class ClientKeys:
    """A `KeySource` wherever the client is connected to, in a pod or by a kubeconfig."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def fetch(self) -> ClusterKeys:
        """The keys as they are now. Raises KeysUnavailable."""
        try:
            discovery = await self._client.request(
                "get", "GET", "/.well-known/openid-configuration"
            )
            found = await self._client.request("get", "GET", "/openid/v1/jwks")
            return parse_keys(str(discovery["issuer"]), found)
        except (ClusterError, KeyError, TypeError) as error:
            raise KeysUnavailable(f"{type(error).__name__}: {error}") from error
