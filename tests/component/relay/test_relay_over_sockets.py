"""Relay and client over real sockets: large bodies, cut streams, renewed tokens, snapshots."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from makers_relay import AGENT_PREFIX, Issuer, make_relay_app, make_token, public_document
from makers_snapshots import KEYS, Recorder, picture, restored
from makers_store import free_port, wait_for_http
from stayer_evaluator.snapshots.base import NO_BASE
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.storage.relay import RelayStore, connect_relay
from stayer_evaluator.storage.retry import RetryingStore, RetryPolicy
from stayer_evaluator.storage.store import AccessDenied, ObjectStore, StoreError

PACK = KEYS.pack("a" * 64)
BIG = bytes(range(256)) * (48 * 4096)  # 48 MiB


@contextmanager
def served(store: ObjectStore, issuer: Issuer | None = None) -> Iterator[tuple[str, Issuer]]:
    app, issuer = make_relay_app(store, issuer)
    port = free_port()
    config = uvicorn.Config(app, port=port, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for_http(f"http://127.0.0.1:{port}/healthz")
        yield f"http://127.0.0.1:{port}", issuer
    finally:
        server.should_exit = True
        thread.join()


def make_store() -> MemoryStore:
    return MemoryStore({KEYS.document: public_document()})


def connect(url: str, token: Path) -> RetryingStore:
    policy = RetryPolicy(deadline=20.0, first_wait=0.01, longest_wait=0.1)
    return connect_relay(url, prefix=AGENT_PREFIX, token=token, policy=policy)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return tmp_path / "token"


def test_a_large_object_goes_through_in_both_directions(token: Path) -> None:
    async def scenario(url: str) -> None:
        client = connect(url, token)
        await client.create(PACK, BIG)

        assert await client.get(PACK) == BIG
        assert await client.get_range(PACK, 40 << 20, 5) == BIG[40 << 20 : (40 << 20) + 5]
        assert b"".join([piece async for piece in client.stream(PACK)]) == BIG
        await client.close()

    store = make_store()
    with served(store) as (url, issuer):
        token.write_text(make_token(issuer))
        asyncio.run(scenario(url))
    assert store.objects[PACK] == BIG


class CutOff(MemoryStore):
    """Every stream ends with trouble after its first piece."""

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        yield (await self.get(key))[: 1 << 20]
        raise StoreError("the store went away")


def test_a_stream_that_is_cut_off_behind_the_relay_is_an_error_in_front_of_it(token: Path) -> None:
    async def scenario(url: str) -> None:
        client = connect(url, token)
        received = 0
        with pytest.raises(StoreError):
            async for piece in client.stream(PACK):
                received += len(piece)
        assert received < len(BIG)
        await client.close()

    with served(CutOff({KEYS.document: public_document(), PACK: BIG})) as (url, issuer):
        token.write_text(make_token(issuer))
        asyncio.run(scenario(url))


def test_a_token_that_is_renewed_meanwhile_is_picked_up(token: Path) -> None:
    issuer = Issuer()
    tokens = [make_token(issuer, lives=-60), make_token(issuer, lives=-60), make_token(issuer)]

    async def scenario(url: str) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            inner = RelayStore(client, lambda: tokens.pop(0), AGENT_PREFIX)
            store = RetryingStore(inner, RetryPolicy(deadline=20.0, first_wait=0.01))
            assert await store.create(PACK, b"x") is True

    with served(make_store(), issuer) as (url, _):
        asyncio.run(scenario(url))
    assert tokens == []


def test_what_the_policy_refuses_is_not_tried_again(token: Path) -> None:
    async def scenario(url: str) -> None:
        client = connect(url, token)
        with pytest.raises(AccessDenied):
            await client.create(KEYS.verdict(1), b"mine")
        assert client.counters.requests == {"create": 1}
        await client.close()

    with served(make_store()) as (url, issuer):
        token.write_text(make_token(issuer))
        asyncio.run(scenario(url))


def test_snapshots_are_taken_and_restored_through_the_relay(token: Path, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "requirement_patches").mkdir(parents=True)
    (root / "requirement_patches" / "u.diff").write_bytes(b"+x")
    (root / "blob").write_bytes(BIG[: 3 << 20])

    async def scenario(url: str) -> None:
        client = connect(url, token)
        recorder = Recorder(root, client)
        await recorder.begin()
        entry = await recorder.take()
        recorder.close()
        assert entry is not None
        assert entry.implemented == ("u",)
        out = await restored(client, entry_tree(entry, NO_BASE), tmp_path)
        assert picture(out) == picture(root)
        await client.close()

    with served(make_store()) as (url, issuer):
        token.write_text(make_token(issuer))
        asyncio.run(scenario(url))


def test_a_body_is_let_go_of_once_it_is_sent(token: Path) -> None:
    """Not when the cyclic collector comes by: a workspace is sent in hundreds of packs."""
    data = bytes(BIG)[:-1]

    async def scenario(url: str) -> int:
        store = connect(url, token)
        gc.collect()
        gc.disable()
        try:
            await store.create(PACK, data)
            return sys.getrefcount(data)
        finally:
            gc.enable()
            await store.close()

    before = sys.getrefcount(data)
    with served(make_store()) as (url, issuer):
        token.write_text(make_token(issuer))
        assert asyncio.run(scenario(url)) == before
