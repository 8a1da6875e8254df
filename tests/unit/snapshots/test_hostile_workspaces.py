"""Workspaces built to break the snapshotter or whoever restores what it took."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from makers_snapshots import KEYS, Recorder, collect, picture, problems, restored
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots.manifest import Node, Piece, pieces_of
from stayer_evaluator.snapshots.pack import content_hash, cut
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import restore
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.memory import MemoryStore


def test_w2_links_that_lead_outside_are_kept_as_links_and_reported(
    root: Path, tmp_path: Path
) -> None:
    targets = {"abs": "/proc/self/root", "up": "../../x", "in": "folder/../abs", "dir/up": "../in"}
    (root / "dir").mkdir()
    for name, target in targets.items():
        (root / name).symlink_to(target)
    store = MemoryStore()

    collected = collect(root, store)
    out = asyncio.run(restored(store, collected.tree, tmp_path))

    assert problems(collected.reports) == {"abs": "escaping_link", "up": "escaping_link"}
    assert picture(out) == picture(root)


def test_w3_hard_links_become_files_of_one_content(root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(b"shared")
    (root / "b").hardlink_to(root / "a")
    store = MemoryStore()

    collected = collect(root, store)
    out = asyncio.run(restored(store, collected.tree, tmp_path))

    assert len(pieces_of(collected.tree)) == 1
    assert (out / "a").stat().st_ino != (out / "b").stat().st_ino


def test_w4_fifos_sockets_and_devices_are_left_out_and_reported(root: Path) -> None:
    os.mkfifo(root / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(root)  # a socket's path must be short
    try:
        listener.bind("sock")
    finally:
        os.chdir(here)
        listener.close()
    expected = {"fifo": "special_file", "sock": "special_file"}
    if os.getuid() == 0:
        os.mknod(root / "null", 0o20666, os.makedev(1, 3))
        expected["null"] = "special_file"

    collected = collect(root)

    assert collected.tree == {}
    assert problems(collected.reports) == expected


def test_w11_setuid_is_stripped_and_reported(root: Path, tmp_path: Path) -> None:
    (root / "tool").write_bytes(b"#!")
    (root / "tool").chmod(0o6755)
    (root / "folder").mkdir()
    (root / "folder").chmod(0o3777)
    store = MemoryStore()

    collected = collect(root, store)
    out = asyncio.run(restored(store, collected.tree, tmp_path))

    assert problems(collected.reports) == {"tool": "setuid_stripped"}
    assert (out / "tool").stat().st_mode & 0o7777 == 0o755
    assert (out / "folder").stat().st_mode & 0o7777 == 0o777


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights to read everything."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_w11_what_may_not_be_read_is_reported_not_fatal() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for path in ("file", "open"):
            (root / path).write_bytes(b"x")
        (root / "closed").mkdir()
        (root / "file").chmod(0)
        (root / "closed").chmod(0)

        with as_nobody():
            collected = collect(root)

        assert problems(collected.reports) == {"closed": "unreadable", "file": "unreadable"}
        assert set(collected.tree) == {b"closed", b"open"}


FILE = Node("file", 0o644)


BAD_TREES: list[tuple[str, dict[bytes, Node]]] = [
    ("a file below a link", {b"a": Node("link", 0o777, target=b"/etc"), b"a/passwd": FILE}),
    ("a file below a file", {b"a": FILE, b"a/b": FILE}),
    ("a file without its parent", {b"a/b": FILE}),
    ("beyond the depth", {b"/".join([b"d"] * n): Node("dir", 0o755) for n in range(1, 300)}),
]


@pytest.mark.parametrize("tree", [pytest.param(t, id=i) for i, t in BAD_TREES])
def test_w12_trees_that_no_walk_gives_are_refused_before_anything_is_touched(
    root: Path, tmp_path: Path, tree: dict[bytes, Node]
) -> None:
    (root / "present").touch()

    with pytest.raises(CorruptObject):
        restore(tree, PackCache(tmp_path), root)

    assert (root / "present").exists()


def test_w12_restoring_never_follows_a_link_that_is_there(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    (root / "a").symlink_to(outside)

    restore({b"a": Node("dir", 0o755), b"a/file": FILE}, PackCache(tmp_path), root)

    assert (outside / "file").read_bytes() == b"mine"
    assert not (root / "a").is_symlink()


def test_w13_a_piece_that_is_not_what_its_hash_says_is_refused() -> None:
    plain = b"content"
    good = Piece(content_hash(plain), "p", 0, 1, 0, len(plain))

    assert cut(plain, good) == plain
    for changes in ({"at": 1}, {"size": 3}, {"hash": "0" * 64}, {"size": 8}):
        with pytest.raises(CorruptObject):
            cut(plain, good._replace(**changes))


def test_excluded_names_never_reach_a_snapshot(root: Path) -> None:
    for path in (".git/config", "a/__pycache__/x.pyc", "a/x.py", "node_modules/m/i.js", "a/b.pyc"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")

    async def scenario(settings: SnapshotSettings) -> list[str]:
        recorder = Recorder(root, MemoryStore())
        await recorder.begin(settings=settings)
        entry = await recorder.take()
        recorder.close()
        assert entry is not None
        return [record.path for record in entry.changed if record.type == "file"]

    default = asyncio.run(scenario(SnapshotSettings()))
    public = asyncio.run(scenario(SnapshotSettings(public_excludes=True, excludes=("*.none",))))

    assert default == ["a/x.py", "node_modules/m/i.js"]
    assert public == ["a/x.py"]


def test_keys_are_hashes_whatever_the_names(root: Path) -> None:
    (root / "..\n-rf").write_bytes(b"x")
    store = MemoryStore()

    collect(root, store)

    assert list(store.objects) == [KEYS.pack(content_hash(next(iter(store.objects.values()))))]
