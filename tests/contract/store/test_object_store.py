"""What every ObjectStore must do, whatever it is made of."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import cast

import pytest

from makers_store import (
    OpenStore,
    moto_endpoint,
    open_memory,
    open_relay,
    s3_opener,
    versitygw_endpoint,
)
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.store import MutableStore, ObjectExists, ObjectMissing, ObjectStore

KEY = f"runs/lab/demo-1a2b3c4d/demo-0123456789/packs/{'a' * 64}"
OTHER = f"runs/lab/demo-1a2b3c4d/demo-0123456789/packs/{'b' * 64}"


@pytest.fixture(scope="module")
def keys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        yield


@pytest.fixture(scope="module")
def moto(keys: None) -> Iterator[str]:
    with moto_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def versitygw(keys: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with versitygw_endpoint(tmp_path_factory.mktemp("versitygw")) as endpoint:
        yield endpoint


VERSITYGW = pytest.param("versitygw", marks=pytest.mark.cluster)


@pytest.fixture(params=["memory", "relay", "moto", VERSITYGW])
def opener(request: pytest.FixtureRequest) -> OpenStore:
    match request.param:
        case "memory":
            return open_memory
        case "relay":
            return open_relay
        case name:
            return s3_opener(request.getfixturevalue(name))


@pytest.fixture(params=["memory", "moto", VERSITYGW])
def mutable_opener(request: pytest.FixtureRequest) -> OpenStore:
    """What operator and command line open."""
    if request.param == "memory":
        return open_memory
    return s3_opener(request.getfixturevalue(request.param))


def run(opener: OpenStore, scenario: Callable[[ObjectStore], Awaitable[None]]) -> None:
    async def go() -> None:
        async with opener() as store:
            await scenario(store)

    asyncio.run(go())


def test_a_created_object_is_read_back_whole_in_part_and_in_pieces(opener: OpenStore) -> None:
    data = bytes(range(256)) * 12_000

    async def scenario(store: ObjectStore) -> None:
        assert await store.create(KEY, data) is True

        assert await store.get(KEY) == data
        assert await store.get_range(KEY, 1_000_001, 77) == data[1_000_001:1_000_078]
        assert b"".join([piece async for piece in store.stream(KEY)]) == data

    run(opener, scenario)


def test_an_empty_object_is_an_object(opener: OpenStore) -> None:
    async def scenario(store: ObjectStore) -> None:
        await store.create(KEY, b"")

        assert await store.get(KEY) == b""
        assert [piece async for piece in store.stream(KEY) if piece] == []

    run(opener, scenario)


def test_a_second_create_with_the_same_bytes_succeeds(opener: OpenStore) -> None:
    async def scenario(store: ObjectStore) -> None:
        await store.create(KEY, b"one")

        assert await store.create(KEY, b"one") is True

    run(opener, scenario)


def test_a_second_create_with_other_bytes_loses_and_changes_nothing(opener: OpenStore) -> None:
    async def scenario(store: ObjectStore) -> None:
        await store.create(KEY, b"one")

        with pytest.raises(ObjectExists):
            await store.create(KEY, b"two")
        assert await store.get(KEY) == b"one"

    run(opener, scenario)


def test_one_of_many_concurrent_creators_wins(opener: OpenStore) -> None:
    async def scenario(store: ObjectStore) -> None:
        bodies = [f"writer {number}".encode() for number in range(16)]

        results = await asyncio.gather(
            *(store.create(KEY, body) for body in bodies), return_exceptions=True
        )

        won = [body for body, result in zip(bodies, results, strict=True) if result is True]
        lost = [result for result in results if isinstance(result, ObjectExists)]
        assert (len(won), len(lost)) == (1, 15)
        assert await store.get(KEY) == won[0]

    run(opener, scenario)


async def _stream(store: ObjectStore) -> AsyncIterator[bytes] | None:
    async for _ in store.stream(OTHER):
        pass
    return None


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda store: store.get(OTHER), id="get"),
        pytest.param(lambda store: store.get_range(OTHER, 0, 1), id="get_range"),
        pytest.param(_stream, id="stream"),
    ],
)
def test_reading_a_missing_object_says_so(
    opener: OpenStore, read: Callable[[ObjectStore], Awaitable[object]]
) -> None:
    async def scenario(store: ObjectStore) -> None:
        with pytest.raises(ObjectMissing):
            await read(store)

    run(opener, scenario)


@pytest.mark.parametrize(("offset", "length"), [(0, 4), (2, 5), (3, 1), (900, 1)])
def test_a_range_beyond_the_end_is_an_error_never_less_data(
    opener: OpenStore, offset: int, length: int
) -> None:
    async def scenario(store: ObjectStore) -> None:
        await store.create(KEY, b"abc")

        with pytest.raises(CorruptObject):
            await store.get_range(KEY, offset, length)

    run(opener, scenario)


def test_keys_below_a_prefix_with_their_sizes_and_gone_once_deleted(
    mutable_opener: OpenStore,
) -> None:
    prefix = f"runs/lab/listed-{uuid.uuid4().hex[:8]}/"

    async def scenario(opened: ObjectStore) -> None:
        store = cast("MutableStore", opened)
        for number, name in enumerate(("b", "a/c", "a/b")):
            await store.put(prefix + name, b"x" * number)
        await store.put(prefix + "a/c", b"replaced")

        sizes = await store.sizes(prefix)
        assert list(sizes.items()) == [
            (f"{prefix}a/b", 2),
            (f"{prefix}a/c", 8),
            (f"{prefix}b", 0),
        ]
        assert await store.keys(f"{prefix}a/") == [f"{prefix}a/b", f"{prefix}a/c"]
        await store.delete([f"{prefix}a/b", f"{prefix}a/c", f"{prefix}never"])
        assert await store.keys(prefix) == [f"{prefix}b"]

    run(mutable_opener, scenario)
