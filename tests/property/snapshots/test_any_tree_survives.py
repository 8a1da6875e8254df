"""Any tree an agent can make comes back as it was; any crash leaves only what is durable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from makers_snapshots import (
    EVERYTHING,
    KEYS,
    D,
    F,
    L,
    Recorder,
    build,
    collect,
    files,
    hold_still,
    links,
    picture,
    restored,
    trees,
)
from stayer_evaluator.records.queue import BaseManifest, SnapshotEntry
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.base import Base, write_base
from stayer_evaluator.snapshots.manifest import delta, expand, full_manifest, tree_digest, tree_of
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.memory import CrashingStore, FaultyStore, MemoryStore, StoreKilled
from stayer_evaluator.storage.queue import QueueReader
from stayer_evaluator.storage.retry import RetryingStore, RetryPolicy
from stayer_evaluator.storage.store import ObjectStore

TASK = TaskKeys("d" * 64)


async def no_sleep(_: float) -> None:
    pass


@given(trees, st.booleans())
@settings(max_examples=60)
def test_a_tree_comes_back_identical(tree: D, old: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory, root = Path(name), Path(name) / "workspace"
        root.mkdir()
        build(root, tree)
        store = MemoryStore()
        if old:
            hold_still()

        collected = collect(root, store)
        out = asyncio.run(restored(store, collected.tree, directory))

        assert picture(out) == picture(root)
        assert collect(out).tree.keys() == collected.tree.keys()
        assert tree_digest(collect(out).tree) == tree_digest(collected.tree)


@given(trees, trees)
@settings(max_examples=60)
def test_a_delta_gives_its_tree_back_on_any_base(first: D, second: D) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = []
        for number, tree in enumerate((first, second)):
            root = Path(name) / str(number)
            root.mkdir()
            build(root, tree)
            found.append(collect(root).tree)
        base, wanted = found

        parts = delta(base, wanted)

        given_back = expand(base, parts.packs, parts.changed, parts.removed)
        assert tree_digest(given_back) == tree_digest(wanted)
        assert tree_of(full_manifest(wanted)) == wanted


@given(trees)
@settings(max_examples=60)
def test_a_manifest_is_valid_canonical_json(tree: D) -> None:
    with tempfile.TemporaryDirectory() as name:
        build(Path(name), tree)

        manifest = full_manifest(collect(Path(name)).tree)

    data = manifest.to_bytes()
    assert data == orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS)
    assert data == orjson.dumps(manifest.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
    assert BaseManifest.from_bytes(data) == manifest


NAMES = st.sampled_from([b"a", b"b", b"c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
EDITS = st.tuples(PATHS, st.one_of(files, links, st.just(D()), st.none()))


def edit(root: Path, change: tuple[bytes, Any]) -> None:
    """Put something at a path, replacing what is in its way; None removes."""
    path, item = change
    here = root
    *above, last = path.split(b"/")
    for part in above:
        here /= os.fsdecode(part)
        if not here.is_dir() or here.is_symlink():
            _clear(here)
            here.mkdir()
    _clear(here / os.fsdecode(last))
    if item is not None:
        build(here, D({last: item}))


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@given(trees, st.lists(st.lists(EDITS, max_size=3), min_size=1, max_size=5))
@settings(max_examples=40)
def test_every_delta_of_a_sequence_of_edits_restores_exactly(
    start: D, steps: list[list[tuple[bytes, Any]]]
) -> None:
    async def scenario(directory: Path) -> None:
        root = directory / "workspace"
        root.mkdir()
        build(root, start)
        store = MemoryStore()
        base = await write_base(store, TASK, root, EVERYTHING)
        recorder = Recorder(root, store, base)
        await recorder.begin()
        first = await recorder.take()
        assert first is not None
        assert first.snapshot == 0
        for step in steps:
            before = picture(root)
            for change in step:
                edit(root, change)
            entry = await recorder.take()
            if picture(root) == before:
                assert entry is None
            else:
                assert entry is not None
                await check(directory, store, base, entry, root)
        assert await recorder.take() is None
        recorder.close()

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(scenario(Path(name)))


async def check(
    directory: Path, store: ObjectStore, base: Base, entry: SnapshotEntry, root: Path
) -> None:
    out = await restored(store, entry_tree(entry, base), directory)
    assert picture(out) == picture(root)


async def announced(store: ObjectStore) -> list[SnapshotEntry]:
    reader = QueueReader(store, KEYS)
    found = []
    while (entry := await reader.poll()) is not None:
        if isinstance(entry, SnapshotEntry):
            found.append(entry)
    return found


WORK: list[tuple[bytes, Any]] = [
    (b"a/x", F(b"one")),
    (b"a/y", F(b"two" * 500_000)),
    (b"l", L(b"a/x")),
    (b"a/x", F(b"three", 0o755)),
    (b"a/y", None),
]


async def work(root: Path, store: ObjectStore, base: Base, incarnation: int, start: int) -> None:
    """Edit and take, one snapshot after each edit."""
    recorder = Recorder(root, store, base)
    try:
        await recorder.begin(incarnation)
        await recorder.take()
        for change in WORK[start:]:
            edit(root, change)
            await recorder.take()
    finally:
        recorder.close()


@given(st.integers(1, 12), st.booleans())
@settings(max_examples=24)
def test_killed_at_any_write_nothing_is_announced_that_is_not_durable(
    write: int, after: bool
) -> None:
    async def scenario(directory: Path) -> None:
        root = directory / "workspace"
        root.mkdir()
        inner = MemoryStore()
        base = await write_base(inner, TASK, root, EVERYTHING)
        with contextlib.suppress(StoreKilled):
            await work(root, CrashingStore(inner, write, after=after), base, 1, 0)
        for entry in await announced(inner):
            await restored(inner, entry_tree(entry, base), directory)

        await work(root, inner, base, 2, len(WORK))  # a successor on the workspace as it is

        entries = await announced(inner)
        assert [entry.snapshot for entry in entries] == list(range(len(entries)))
        await check(directory, inner, base, entries[-1], root)

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(scenario(Path(name)))


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
@settings(max_examples=24)
def test_lost_answers_and_refusals_change_nothing(lost: set[int], refused: set[int]) -> None:
    async def scenario(directory: Path) -> None:
        pictures = []
        for number, calm in enumerate((True, False)):
            root = directory / str(number)
            root.mkdir()
            inner = MemoryStore()
            base = await write_base(inner, TASK, root, EVERYTHING)
            faulty = FaultyStore(inner, lost=lost - refused, refused=refused)
            policy = RetryPolicy(deadline=1e9)
            store = RetryingStore(faulty, policy, sleep=no_sleep)
            await work(root, inner if calm else store, base, 1, 0)
            entries = await announced(inner)
            pictures.append([(entry.number, entry.snapshot, entry.tree) for entry in entries])
        assert pictures[0] == pictures[1]

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(scenario(Path(name)))


@given(st.binary(min_size=1, max_size=12).filter(lambda raw: b"\0" not in raw))
def test_every_name_is_written_as_text_and_read_back(raw: bytes) -> None:
    text = names.encode(raw)

    assert names.decode(text) == raw
    text.encode("utf-8")
