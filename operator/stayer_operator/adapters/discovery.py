"""What the operator asks of the cluster once, when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from stayer_operator.adapters.api_client import ApiClient
from stayer_operator.adapters.cluster import SERVICES
from stayer_operator.api import names
from stayer_operator.errors import NotFound, SettingsError

KINDS = (names.RUN_PLURAL, names.TRIAL_PLURAL)


async def missing_kinds(client: ApiClient) -> Sequence[str]:
    """Our kinds that the API server does not serve (yet). Raises ClusterError."""
    path = f"/apis/{names.GROUP}/{names.VERSION}"
    try:
        answer = await client.request("get", "GET", path)
    except NotFound:
        return KINDS
    served = {resource["name"] for resource in answer.get("resources", ())}
    return tuple(kind for kind in KINDS if kind not in served)


async def service_address(client: ApiClient, url: str, variable: str) -> str:
    """The cluster address behind `http://<service>.<namespace>.svc:<port>`.

    Raises SettingsError when the URL has another form or the Service no address of its own;
    `variable` is the setting that gives the address directly. Raises ClusterError.
    """
    host = (urlsplit(url).hostname or "").split(".")
    if len(host) < 3 or host[2] != "svc":
        raise SettingsError(
            f"{url}: the address of the Service is not known; accepted: a host like "
            f"<service>.<namespace>.svc, or the address itself in {variable}"
        )
    try:
        service = await client.request("get", "GET", SERVICES.path(host[1], host[0]))
    except NotFound as error:
        raise SettingsError(f"{url}: no Service {host[0]} in namespace {host[1]}") from error
    address = str(service.get("spec", {}).get("clusterIP") or "None")
    if address == "None":
        raise SettingsError(f"{url}: the Service {host[0]} has no cluster address (headless)")
    return address
