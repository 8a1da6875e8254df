"""Emptying a directory, restoring into it, packs on disk, and restores in two halves."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from makers_snapshots import KEYS, D, F, L, Recorder, build, collect, picture, restored
from stayer_evaluator.snapshots.base import NO_BASE
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner, restore
from stayer_evaluator.snapshots.resume import ResumeLayer, newest_resume
from stayer_evaluator.snapshots.staging import restore_staged, stage
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.memory import MemoryStore

TREE = D(
    {
        b"a": D({b"b": D({b"c": F(b"content", 0o755)}, 0o500), b"empty": D()}, 0o700),
        b"link": L(b"/etc/passwd"),
        b"file": F(b""),
    }
)


def test_wiping_removes_everything_but_the_directory_and_follows_nothing(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    build(root, TREE)
    (root / "out").symlink_to(outside)
    (root / ".wipe-0").mkdir()
    sticky = root / "sticky"
    sticky.mkdir()
    (sticky / "inner").mkdir()
    (sticky / "inner" / "x").touch()
    sticky.chmod(0o1777)
    (sticky / "inner").chmod(0)

    wipe(root)
    wipe(root)

    assert list(root.iterdir()) == []
    assert (outside / "kept").exists()


def test_restoring_replaces_whatever_was_there_and_may_be_repeated(
    root: Path, tmp_path: Path
) -> None:
    build(root, TREE)
    store = MemoryStore()
    tree = collect(root, store).tree
    out = tmp_path / "restored"
    build_old = D({b"a": L(b"/tmp"), b"old": D({b"x": F(b"x")})})
    out.mkdir()
    build(out, build_old)

    for _ in range(2):
        asyncio.run(restored(store, tree, tmp_path))

        assert picture(out) == picture(root)


def test_restored_paths_belong_to_their_owner(root: Path, tmp_path: Path) -> None:
    build(root, TREE)
    store = MemoryStore()
    tree = collect(root, store).tree

    # Only root can give files to somebody else.
    owner = Owner(10001, 10002) if os.getuid() == 0 else Owner(os.getuid(), os.getgid())

    out = asyncio.run(restored(store, tree, tmp_path, owner))

    for path in (out, *out.rglob("*")):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (owner.uid, owner.gid)


def test_a_pack_with_other_bytes_than_its_name_says_is_refused(root: Path, tmp_path: Path) -> None:
    build(root, TREE)
    store = MemoryStore()
    tree = collect(root, store).tree
    (key,) = store.objects
    store.objects[key] += b"x"

    with pytest.raises(CorruptObject):
        asyncio.run(PackCache(tmp_path / "packs").fetch(store, tree))


def test_packs_are_downloaded_once_and_discarded_when_no_tree_needs_them(
    root: Path, tmp_path: Path
) -> None:
    build(root, TREE)
    store = MemoryStore()
    tree = collect(root, store).tree
    cache = PackCache(tmp_path / "packs")

    assert asyncio.run(cache.fetch(store, tree)) == 1
    assert asyncio.run(cache.fetch(store, tree)) == 0
    cache.discard_others({})
    assert asyncio.run(cache.fetch(store, tree)) == 1


def test_a_pack_that_was_cut_off_on_disk_fails_its_check(root: Path, tmp_path: Path) -> None:
    build(root, TREE)
    store = MemoryStore()
    tree = collect(root, store).tree
    cache = PackCache(tmp_path / "packs")
    asyncio.run(cache.fetch(store, tree))
    (pack,) = (tmp_path / "packs").iterdir()
    pack.write_bytes(pack.read_bytes()[:-3])

    with pytest.raises(CorruptObject):
        restore(tree, cache, root)
    cache.close()


def make_pod(root: Path, home: Path) -> None:
    """A workspace with a repository, and a HOME."""
    build(root, TREE)
    build(root, D({b".git": D({b"HEAD": F(b"ref"), b"index.lock": F(b""), b"config": F(b"c")})}))
    home.mkdir()
    build(home, D({b".cache": D({b"big": F(b"x" * 1000)}), b".claude": D({b"s": F(b"state")})}))


def test_a_restore_in_two_halves_brings_workspace_repository_and_home(
    root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    make_pod(root, home)
    store = MemoryStore()
    state, new_root, new_home = tmp_path / "state", tmp_path / "new", tmp_path / "newhome"
    for path in (state, new_root, new_home):
        path.mkdir()

    async def scenario() -> None:
        recorder = Recorder(root, store)
        await recorder.begin()
        await recorder.take()
        assert recorder.snapshotter is not None
        queue = recorder.snapshotter.queue
        layer = ResumeLayer(root, home, queue)
        assert await layer.save(3.0) == 0
        assert await layer.save(4.0) is None
        (home / ".claude" / "s").write_bytes(b"later")
        assert await layer.save(5.0) == 1
        layer.close()
        recorder.close()
        assert queue.last_snapshot is not None
        resume = await newest_resume(store, KEYS)
        for _ in range(2):
            await stage(store, state, NO_BASE, queue.last_snapshot, resume)

    asyncio.run(scenario())
    for _ in range(2):
        assert restore_staged(state, new_root, new_home, None) == 0

    expected = picture(root)
    del expected[b".git/index.lock"]
    assert picture(new_root) == expected
    assert picture(new_home) == {
        b".claude": ("dir", 0o755, b""),
        b".claude/s": ("file", 0o644, b"later"),
    }


def test_nothing_is_restored_where_nothing_was_staged(root: Path, tmp_path: Path) -> None:
    (root / "seeded").touch()

    assert restore_staged(tmp_path, root, tmp_path, None) is None
    assert (root / "seeded").exists()


def test_a_number_that_an_old_recorder_took_is_passed_over(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_pod(root, home)
    store = MemoryStore({KEYS.resume(0): b"of another recorder"})

    async def scenario() -> int | None:
        recorder = Recorder(root, store)
        await recorder.begin()
        assert recorder.snapshotter is not None
        layer = ResumeLayer(root, home, recorder.snapshotter.queue)
        try:
            return await layer.save(3.0)
        finally:
            layer.close()
            recorder.close()

    assert asyncio.run(scenario()) == 1


def test_a_trial_without_a_layer_has_none() -> None:
    assert asyncio.run(newest_resume(MemoryStore(), KEYS)) is None
