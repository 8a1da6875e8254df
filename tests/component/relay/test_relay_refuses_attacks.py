"""The relay over HTTP, attacked by a pod of one trial (security.md W18, W19)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from makers_relay import (
    AGENT_PREFIX,
    DIGEST,
    Issuer,
    make_document,
    make_relay_app,
    make_token,
)
from stayer_evaluator.storage.memory import FaultyStore, MemoryStore
from stayer_evaluator.storage.relay import PREFIX_HEADER
from stayer_evaluator.storage.store import ObjectStore

P = AGENT_PREFIX
NEIGHBOUR = "runs/lab/demo-1a2b3c4d/demo-9999999999/"
PACK = f"{P}packs/{'a' * 64}"


def make_store() -> MemoryStore:
    neighbour = make_document(trial="demo-9999999999", prefix=NEIGHBOUR)
    return MemoryStore(
        {
            f"{P}trial.json": make_document().to_bytes(),
            f"{P}queue/00000000": b"entry",
            f"{P}verdicts/00000000": b"verdict",
            f"{P}results.json": b"results",
            f"{NEIGHBOUR}trial.json": neighbour.to_bytes(),
            f"{NEIGHBOUR}queue/00000000": b"secret",
            f"tasks/{DIGEST}/task.json": b"task",
            f"tasks/{DIGEST}/gold.tar.zst": b"gold",
        }
    )


@asynccontextmanager
async def relay(
    store: ObjectStore, *, max_object: int = 1024
) -> AsyncIterator[tuple[httpx.AsyncClient, Issuer]]:
    app, issuer = make_relay_app(store, max_object=max_object)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://relay") as client:
        yield client, issuer


def ask(
    method: str,
    path: str,
    *,
    store: ObjectStore | None = None,
    headers: dict[str, str] | None = None,
    content: bytes | AsyncIterator[bytes] | None = None,
    max_object: int = 1024,
    **claims: Any,
) -> httpx.Response:
    """One request by the trial's recorder, or as `claims` say."""

    async def go() -> httpx.Response:
        async with relay(store or make_store(), max_object=max_object) as (client, issuer):
            bearer = {"Authorization": f"Bearer {make_token(issuer, **claims)}"}
            all_headers = {**bearer, PREFIX_HEADER: P, **(headers or {})}
            return await client.request(
                method, f"/v1/objects/{path}", headers=all_headers, content=content
            )

    return asyncio.run(go())


def test_an_object_is_created_once_and_never_replaced() -> None:
    store = make_store()

    first = ask("PUT", PACK, store=store, content=b"one")
    again = ask("PUT", PACK, store=store, content=b"one")
    other = ask("PUT", PACK, store=store, content=b"two")

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 412)
    assert store.objects[PACK] == b"one"


ATTACKS = [
    ("another trial's entry", f"{NEIGHBOUR}queue/00000000"),
    ("another trial by dots", f"{P}../demo-9999999999/queue/00000000"),
    ("another trial by escaped dots", f"{P}%2e%2e/demo-9999999999/queue/00000000"),
    ("another trial by an escaped slash", f"{P}..%2fdemo-9999999999%2fqueue%2f00000000"),
    ("another trial by double escapes", f"{P}%252e%252e/demo-9999999999/queue/00000000"),
    ("a verdict", f"{P}verdicts/00000000"),
    ("a verdict by an escaped letter", f"{P}verdict%73/00000000"),
    ("results", f"{P}results.json"),
    ("gold", f"tasks/{DIGEST}/gold.tar.zst"),
    ("the run's prefix", "runs/lab/demo-1a2b3c4d/"),
    ("its own prefix", P),
    ("the whole bucket", ""),
    ("a NUL", f"{P}queue/0000000%00"),
]


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for name, path in ATTACKS])
def test_a_recorder_cannot_read(path: str) -> None:
    answer = ask("GET", path)

    assert answer.status_code in (403, 404)
    assert not any(word in answer.content for word in (b"secret", b"verdict\n", b"gold.tar"))


def test_a_neighbour_is_out_of_reach_even_when_the_header_names_it() -> None:
    answer = ask("GET", f"{NEIGHBOUR}queue/00000000", headers={PREFIX_HEADER: NEIGHBOUR})

    assert answer.status_code == 403


BAD_CALLERS: list[tuple[str, dict[str, Any]]] = [
    ("with a token of another audience", {"audience": "vault"}),
    ("with an expired token", {"lives": -60}),
    ("of another service account", {"account": "builder"}),
    ("of a pod that is no trial's", {"pod": "web-0"}),
    ("bound to no pod", {"bound": False}),
]


@pytest.mark.parametrize("claims", [pytest.param(c, id=i) for i, c in BAD_CALLERS])
def test_a_caller_is_not_let_in(claims: dict[str, Any]) -> None:
    assert ask("GET", f"{P}queue/00000000", **claims).status_code == 401


@pytest.mark.parametrize("value", ["", "Bearer", "Basic abc", "bearer "])
def test_no_token_no_answer(value: str) -> None:
    answer = ask("GET", f"{P}queue/00000000", headers={"Authorization": value})

    assert answer.status_code == 401


def test_a_pod_of_a_trial_without_a_document_is_refused() -> None:
    answer = ask("GET", f"{P}queue/00000000", store=MemoryStore({f"{P}queue/00000000": b"x"}))

    assert answer.status_code == 403


def test_a_namesake_in_another_namespace_is_refused() -> None:
    assert ask("GET", f"{P}queue/00000000", namespace="other").status_code == 403


@pytest.mark.parametrize("method", ["DELETE", "POST", "PATCH"])
def test_nothing_but_get_and_put(method: str) -> None:
    assert ask(method, f"{P}queue/00000000").status_code == 405


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    store = make_store()

    assert ask("PUT", PACK, store=store, content=b"x" * 1025).status_code == 413
    assert PACK not in store.objects


def test_a_body_without_a_length_is_refused() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    store = make_store()

    assert ask("PUT", PACK, store=store, content=pieces()).status_code in (400, 411)
    assert PACK not in store.objects


def test_ranges_are_honoured_and_odd_ones_refused() -> None:
    key = f"{P}queue/00000000"

    part = ask("GET", key, headers={"Range": "bytes=1-3"})

    assert (part.status_code, part.content) == (206, b"ntr")
    assert part.headers["content-range"] == "bytes 1-3/*"
    assert ask("GET", key, headers={"Range": "bytes=3-9"}).status_code == 416
    for odd in ("bytes=3-1", "bytes=-1", "bytes=0-1,3-4", "lines=1-2"):
        assert ask("GET", key, headers={"Range": odd}).status_code == 400


def test_trouble_with_the_store_is_503_and_says_nothing_of_it() -> None:
    store = FaultyStore(make_store(), refused=range(100))

    answer = ask("GET", f"{P}queue/00000000", store=store)

    assert (answer.status_code, answer.text) == (503, "store: StoreError")


def test_health_and_metrics_need_no_token() -> None:
    async def go() -> None:
        async with relay(make_store()) as (client, _):
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            await client.get(f"/v1/objects/{P}trial.json")
            text = (await client.get("/metrics")).text
            assert 'stayer_relay_requests_total{code="401",method="GET",role="none"} 1.0' in text

    asyncio.run(go())
