"""Proofs before the start."""

import asyncio

import pytest

from stayer_evaluator.episode.isolation import (
    NotIsolated,
    demand_user_namespace,
    prove_closed,
    user_namespace,
)


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def test_an_address_that_answers_stops_the_trial():
    async def scenario() -> None:
        server = await asyncio.start_server(nothing, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        try:
            with pytest.raises(NotIsolated, match=f"{address[0]}:{address[1]}") as caught:
                await prove_closed([address], 0)
            assert caught.value.reason == "IsolationNotEnforced"
        finally:
            server.close()
            await server.wait_closed()

    asyncio.run(scenario())


def test_a_policy_may_come_a_little_late():
    async def scenario() -> None:
        server = await asyncio.start_server(nothing, "127.0.0.1", 0)
        proof = asyncio.create_task(prove_closed([server.sockets[0].getsockname()[:2]], 20))
        await asyncio.sleep(0.05)
        assert not proof.done()
        server.close()
        await server.wait_closed()
        await proof

    asyncio.run(scenario())


def test_addresses_that_refuse_are_proof():
    async def scenario() -> None:
        server = await asyncio.start_server(nothing, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        server.close()
        await server.wait_closed()
        await prove_closed([address, address], 0)
        await prove_closed([], 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("         0          0 4294967295\n", "host"),
        ("         0     131072      65536\n", "0 131072 65536"),
    ],
)
def test_the_uid_map_tells_whether_root_is_the_nodes_root(tmp_path, text, found):
    path = tmp_path / "uid_map"
    path.write_text(text)

    assert user_namespace(path) == found


def test_a_user_namespace_is_demanded_only_where_it_is_required():
    demand_user_namespace("required", "0 131072 65536")
    demand_user_namespace("preferred", "host")
    demand_user_namespace("off", "host")
    with pytest.raises(NotIsolated) as caught:
        demand_user_namespace("required", "host")
    assert caught.value.reason == "UserNamespaceNotEnforced"
