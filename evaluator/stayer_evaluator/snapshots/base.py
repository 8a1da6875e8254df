"""The base tree of a task: the image's `/workspace`, stored once per task digest."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pydantic

from stayer_evaluator.records.queue import BaseManifest
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.collect import Collector, PackStore
from stayer_evaluator.snapshots.excludes import Excludes
from stayer_evaluator.snapshots.manifest import BadManifest, Tree, full_manifest, tree_of
from stayer_evaluator.snapshots.walk import Limits
from stayer_evaluator.storage.documents import CorruptObject, compress, decompress
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.store import ObjectExists, ObjectStore


@dataclass(frozen=True, slots=True)
class Base:
    """A base tree and what snapshots call it."""

    sha256: str
    """Of the stored manifest object."""
    manifest: BaseManifest
    tree: Tree


NO_BASE = Base(sha256="", manifest=full_manifest({}), tree={})
"""For trees without a base: every delta is a full manifest."""


async def write_base(
    store: ObjectStore,
    keys: TaskKeys,
    root: Path,
    excludes: Excludes,
    limits: Limits | None = None,
) -> Base:
    """Store the tree at `root` as the task's base; whoever comes second adopts the first.

    Raises StoreError, OSError.
    """
    collector = Collector(root, excludes, limits)
    try:
        collected = await collector.collect(PackStore(store, keys.base_pack))
        assert collected is not None  # the first collection always finds a tree
        await collector.settle(collected)
    finally:
        collector.close()
    data = compress(full_manifest(collected.tree))
    try:
        await store.create(keys.base_manifest, data)
    except ObjectExists:
        return await read_base(store, keys)
    return parse_base(data)


async def read_base(store: ObjectStore, keys: TaskKeys) -> Base:
    """The base of a task. Raises ObjectMissing, CorruptObject, StoreError."""
    return parse_base(await store.get(keys.base_manifest))


def parse_base(data: bytes) -> Base:
    """The base in the bytes of a manifest object. Raises CorruptObject."""
    try:
        manifest = BaseManifest.from_bytes(decompress(data))
        tree = tree_of(manifest)
    except (pydantic.ValidationError, BadManifest, names.UnsafePath) as error:
        raise CorruptObject(f"base manifest: {error}") from error
    return Base(hashlib.sha256(data).hexdigest(), manifest, tree)
