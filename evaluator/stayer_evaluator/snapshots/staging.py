"""A restore in two halves: the recorder, which has a token, downloads; the init container after
it, which has none and may write to the workspace, restores.
"""

from pathlib import Path
from typing import Literal

import pydantic

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.queue import BaseManifest, SnapshotEntry
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.base import Base
from stayer_evaluator.snapshots.manifest import BadManifest, Tree, full_manifest, tree_of
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner, restore
from stayer_evaluator.snapshots.resume import ResumeIndex
from stayer_evaluator.snapshots.take import entry_tree
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.store import ObjectStore

PLAN = "restore.json"
PACKS = "objects"


class StagedRestore(Record):
    """`restore.json`: what the init container is to restore."""

    schema_version: Literal["stayer.dev/restore/v1"] = "stayer.dev/restore/v1"
    snapshot: int
    workspace: BaseManifest
    git: BaseManifest | None = None
    home: BaseManifest | None = None


async def stage(
    store: ObjectStore,
    state: Path,
    base: Base,
    snapshot: SnapshotEntry,
    resume: ResumeIndex | None,
) -> None:
    """Download all that `restore_staged` needs into the directory `state`.

    The plan is written last and whole; killed at any point, a second call finishes the work.
    Raises CorruptObject, StoreError, OSError.
    """
    workspace = entry_tree(snapshot, base)
    plan = StagedRestore(
        snapshot=snapshot.snapshot,
        workspace=full_manifest(workspace),
        git=None if resume is None else resume.git,
        home=None if resume is None else resume.home,
    )
    cache = PackCache(state / PACKS)
    for tree in _trees(plan):
        await cache.fetch(store, tree)
    partial = state / f"{PLAN}.partial"
    partial.write_bytes(plan.to_bytes())
    partial.replace(state / PLAN)


def restore_staged(state: Path, workspace: Path, home: Path, owner: Owner | None) -> int | None:
    """Restore what `stage` left in `state`; returns the snapshot's count, None without a plan.

    Safe to repeat. Raises CorruptObject, OSError.
    """
    try:
        data = (state / PLAN).read_bytes()
    except FileNotFoundError:
        return None
    try:
        plan = StagedRestore.from_bytes(data)
        trees = _trees(plan)
    except (pydantic.ValidationError, BadManifest, names.UnsafePath) as error:
        raise CorruptObject(f"{PLAN}: {error}") from error
    cache = PackCache(state / PACKS)
    try:
        restore(trees[0], cache, workspace, owner)
        if plan.git is not None and plan.home is not None:
            restore(trees[1], cache, workspace, owner, add=True)
            restore(trees[2], cache, home, owner)
    finally:
        cache.close()
    return plan.snapshot


def _trees(plan: StagedRestore) -> list[Tree]:
    manifests = [plan.workspace, plan.git, plan.home]
    return [tree_of(manifest) for manifest in manifests if manifest is not None]
