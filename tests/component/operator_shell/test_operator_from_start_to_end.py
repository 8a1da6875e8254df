"""The whole operator process against the fake API server: Ready, calm, ended in order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from makers_features import ClusterWithKubelet
from makers_operator_shell import FakeApiServer, eventually, serve
from stayer_operator.adapters.connection import Connection
from stayer_operator.main import Operator
from stayer_operator.settings import read_settings

LEASE = ("leases", "stayer-system", "stayer-operator")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_env() -> dict[str, str]:
    return {
        "STAYER_RUN_NAMESPACES": "lab",
        "STAYER_EVALUATOR_IMAGE": "evaluator:1",
        "STAYER_RUNNER_IMAGE": "runner:1",
        "STAYER_RUNNER_DELIVERY": "image-volume",
        "STAYER_USER_NAMESPACES": "true",
        "STAYER_RELAY_URL": "http://stayer-relay.stayer-system.svc:8088",
        "STAYER_PROGRESS_URL": "http://stayer-operator.stayer-system.svc:8087",
        # Nobody listens there: the operator has to work without its store.
        "STAYER_S3_ENDPOINT": "http://127.0.0.1:1",
        "STAYER_S3_BUCKET": "evidence",
        "STAYER_METRICS_PORT": str(free_port()),
        "STAYER_PROGRESS_PORT": str(free_port()),
        "POD_UID": "this-pod",
    }


def make_server() -> FakeApiServer:
    server = FakeApiServer()
    for name in ("stayer-relay", "stayer-operator"):
        server.put("services", "stayer-system", name, clusterIP="10.96.0.99")
    return server


async def answer(port: str, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


def live(
    server: FakeApiServer, scenario: Callable[[dict[str, str]], Awaitable[None]], **more: str
) -> int:
    """Start the operator, play the scenario, and return its exit code."""

    async def main() -> int:
        env = make_env() | more
        async with serve(server) as address:
            operator = Operator(read_settings(env), Connection(server=address, tls=None))
            running = asyncio.create_task(operator.run())
            try:
                async with asyncio.timeout(60):
                    await scenario(env)
                    return await running
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    return asyncio.run(main())


async def until_ready(port: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                if (await answer(port, "/readyz"))[0] == 200:
                    return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.02)


async def calm(server: FakeApiServer) -> None:
    """Two renewals of the lease in a row, five seconds apart, with nothing else between them."""
    renewals = 2 * [("PUT", "stayer-operator")]

    def is_calm() -> bool:
        last = server.requests[-len(renewals) :]
        return [(verb, path.rsplit("/", 1)[-1]) for verb, path, _ in last] == renewals

    await eventually(is_calm, 30)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def test_it_leads_and_gives_the_lease_back_on_sigterm() -> None:
    server = make_server()

    async def scenario(env: dict[str, str]) -> None:
        port = env["STAYER_METRICS_PORT"]
        await until_ready(port)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == "this-pod"
        assert (await answer(port, "/healthz"))[0] == 200
        text = (await answer(port, "/metrics"))[1]
        assert 'stayer_api_requests_total{verb="list"}' in text
        assert 'stayer_feature_available{feature="image_volumes",source="setting"} 1.0' in text
        os.kill(os.getpid(), signal.SIGTERM)

    assert live(server, scenario) == 0
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


def test_it_finds_out_by_a_probe_pod_what_is_not_set_and_is_calm_afterwards() -> None:
    server = ClusterWithKubelet(objects=make_server().objects)

    async def scenario(env: dict[str, str]) -> None:
        port = env["STAYER_METRICS_PORT"]
        await until_ready(port)
        text = (await answer(port, "/metrics"))[1]
        assert 'stayer_feature_available{feature="user_namespaces",source="probe"} 1.0' in text
        await calm(server)
        os.kill(os.getpid(), signal.SIGTERM)

    assert live(server, scenario, STAYER_RUNNER_DELIVERY="", STAYER_USER_NAMESPACES="auto") == 0
    assert len(server.posted) == 1


def test_it_ends_when_another_takes_the_lease_and_leaves_it_alone() -> None:
    server = make_server()

    async def scenario(env: dict[str, str]) -> None:
        await until_ready(env["STAYER_METRICS_PORT"])
        server.put(*LEASE, holderIdentity="another", leaseDurationSeconds=15)

    assert live(server, scenario) == 1
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "another"


def test_a_second_one_is_alive_but_not_ready() -> None:
    server = make_server()
    server.put(*LEASE, holderIdentity="another", leaseDurationSeconds=60)

    async def scenario(env: dict[str, str]) -> None:
        port = env["STAYER_METRICS_PORT"]
        await eventually(lambda: bool(server.requests))
        assert (await answer(port, "/healthz"))[0] == 200
        assert (await answer(port, "/readyz"))[0] == 503
        os.kill(os.getpid(), signal.SIGTERM)

    assert live(server, scenario) == 0
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "another"
    assert all("lease" in path for _, path, _ in server.requests)


def test_a_service_that_is_missing_ends_it_with_its_name(
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = FakeApiServer()

    async def scenario(_env: dict[str, str]) -> None:
        await eventually(lambda: any("services" in path for _, path, _ in server.requests), 30)

    assert live(server, scenario) == 2
    said = capfd.readouterr()
    assert "stayer-relay" in said.out + said.err
