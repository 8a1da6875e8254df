"""Workspaces built to break the snapshotter: security.md W1-W13, in that order."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from makers_snapshots import KEYS, Recorder, collect, picture, problems, restored
from stayer_evaluator.records.trial import SnapshotSettings
from stayer_evaluator.snapshots.manifest import Node, Piece, Tree, pieces_of
from stayer_evaluator.snapshots.pack import CHUNK, FRAME_LIMIT, content_hash, cut, unpack
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.reading import Reading
from stayer_evaluator.snapshots.restore import restore
from stayer_evaluator.snapshots.walk import Limits, Unread
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.memory import MemoryStore

SECRET = b"SECRET-OF-THE-SIDECAR"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


def contents(store: MemoryStore, tree: Tree) -> set[bytes]:
    """Every content that the tree refers to."""
    return {
        cut(unpack(store.objects[p.pack][p.offset : p.offset + p.length]), p)
        for p in pieces_of(tree).values()
    }


@contextmanager
def in_background(step: Callable[[], None]) -> Iterator[None]:
    """Repeat `step` in a thread for as long as the body runs."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            step()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_w1_a_leaf_swapped_for_a_link_never_leaks_what_it_points_to(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    leaf, spare = root / "leaf", root / "spare"

    def swap() -> None:
        spare.symlink_to(tmp_path / "secret")
        spare.rename(leaf)
        spare.write_bytes(b"harmless")
        spare.rename(leaf)

    with in_background(swap):
        for _ in range(60):
            store = MemoryStore()
            assert SECRET not in contents(store, collect(root, store).tree)


def test_w1_a_parent_swapped_for_a_link_never_leads_outside(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    folder, aside, link = root / "folder", root / "aside", root / "link"
    folder.mkdir()
    (folder / "file").write_bytes(b"harmless")
    link.symlink_to(outside)

    def swap() -> None:
        folder.rename(aside)
        link.rename(folder)
        folder.rename(link)
        aside.rename(folder)

    with in_background(swap):
        for _ in range(60):
            store = MemoryStore()
            assert SECRET not in contents(store, collect(root, store).tree)


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


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "nothing"])
def test_w4_a_file_that_turns_into_something_else_before_it_is_read_is_absent(
    root: Path, kind: str
) -> None:
    make: dict[str, Callable[[Path], object]] = {
        "fifo": os.mkfifo,
        "folder": Path.mkdir,
        "link": lambda path: path.symlink_to("/etc/passwd"),
        "nothing": lambda path: None,
    }
    make[kind](root / "file")
    fd = os.open(root, os.O_RDONLY)
    with ThreadPoolExecutor(2) as pool:
        reading = Reading(fd, set(), pool, 2)
        for size in (10, 2 * CHUNK):
            file = Unread("", "file", (size, 1, 1, 1, 0o100644))
            assert list(reading.packs([(fd, [file])])) == []
    os.close(fd)

    assert [content.problem for content in reading.contents] == ["vanished"] * 3 or [
        content.problem for content in reading.contents
    ] == ["vanished"] * 2


def test_w5_a_sparse_giant_is_left_out_and_reported(root: Path) -> None:
    with (root / "giant").open("wb") as file:
        file.truncate(1 << 40)

    collected = collect(root)

    assert collected.tree == {}
    assert problems(collected.reports) == {"giant": "sparse_capped"}


def test_w5_a_sparse_file_within_the_limit_keeps_its_holes(root: Path, tmp_path: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(64 * CHUNK + 17)
        for offset in range(3 * CHUNK, 5 * CHUNK, 8192):
            file.seek(offset)
            file.write(b"x" * 4096)
        file.seek(40 * CHUNK)
        file.write(b"end")
    store = MemoryStore()

    collected = collect(root, store)
    out = asyncio.run(restored(store, collected.tree, tmp_path))

    assert collected.bytes_read <= 2 * 3 * CHUNK  # read twice, as it has just been written
    assert (out / "sparse").read_bytes() == (root / "sparse").read_bytes()
    assert (out / "sparse").stat().st_blocks * 512 <= 4 * CHUNK


def test_w6_beyond_the_file_limit_the_first_by_name_stay_and_it_is_reported(root: Path) -> None:
    for number in range(50):
        (root / f"f{number:02}").touch()
    (root / "requirement_patches").mkdir()
    (root / "requirement_patches" / "z.diff").write_bytes(b"x")

    collected = collect(root, limits=Limits(files=20))

    kept = sorted(path for path in collected.tree if path.startswith(b"f"))
    assert kept == [b"f%02d" % number for number in range(len(kept))]
    assert 15 <= len(kept) <= 20
    assert b"requirement_patches/z.diff" in collected.tree
    assert problems(collected.reports) == {".": "too_many_files"}


def test_w6_beyond_the_byte_limit_files_are_left_out_and_reported(root: Path) -> None:
    for name in "abc":
        (root / name).write_bytes(name.encode() * 600)

    collected = collect(root, limits=Limits(bytes=1000))

    assert set(collected.tree) == {b"a"}
    assert problems(collected.reports) == {"b": "too_large", "c": "too_large"}


def deep(root: Path, levels: int) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    with os.fdopen(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd), "wb") as file:
        file.write(b"deep")
    os.close(fd)


def test_w7_three_thousand_levels_are_cut_reported_and_wiped(root: Path) -> None:
    deep(root, 3000)

    collected = collect(root)
    wipe(root)

    assert len(collected.tree) == 256
    assert list(problems(collected.reports).values()) == ["too_deep"]
    assert list(root.iterdir()) == []


def test_w7_a_deep_tree_within_the_limit_comes_back(root: Path, tmp_path: Path) -> None:
    deep(root, 200)
    store = MemoryStore()

    collected = collect(root, store)
    asyncio.run(restored(store, collected.tree, tmp_path))
    again = collect(tmp_path / "restored")

    assert again.tree.keys() == collected.tree.keys()
    assert not collected.reports
    wipe(root)
    wipe(tmp_path / "restored")


def is_a_state(content: bytes, block: int) -> bool:
    """Whether a file that is rewritten block by block, front to back, ever held this."""
    rounds = [content[offset] for offset in range(0, len(content), block)]
    return all(first in (rounds[0], (rounds[0] - 1) % 256) for first in rounds) and (
        rounds == sorted(rounds, key=lambda number: number != rounds[0])
    )


def test_w9_a_file_that_never_holds_still_is_a_state_it_had_or_reported(root: Path) -> None:
    path = root / "busy"
    block, blocks = 1024, 200
    path.write_bytes(bytes(block * blocks))
    fd = os.open(path, os.O_WRONLY)
    numbers = itertools.count(blocks)

    def rewrite_a_block() -> None:
        number = next(numbers)
        os.pwrite(fd, bytes([number // blocks % 256]) * block, number % blocks * block)

    with in_background(rewrite_a_block):
        for _ in range(20):
            store = MemoryStore()
            collected = collect(root, store)
            (content,) = contents(store, collected.tree)
            assert len(content) == block * blocks
            unstable = problems(collected.reports) == {"busy": "unstable"}
            assert unstable or is_a_state(content, block)
    os.close(fd)


@pytest.mark.parametrize("size", [100, 3 * CHUNK])
def test_w9_growing_and_shrinking_files_are_stored_at_a_size_they_had(
    root: Path, size: int
) -> None:
    path = root / "moving"
    path.write_bytes(b"x" * size)
    fd = os.open(path, os.O_WRONLY)
    sizes = iter([size, size // 2, 2 * size] * 1_000_000)

    with in_background(lambda: os.ftruncate(fd, next(sizes))):
        for _ in range(10):
            collected = collect(root)
            node = collected.tree[b"moving"]
            assert node.size == sum(piece.size for piece in node.pieces)
            assert node.size in (size // 2, size, 2 * size) or collected.reports
    os.close(fd)


def test_w10_a_forged_mtime_hides_no_change(root: Path) -> None:
    async def scenario() -> None:
        path = root / "file"
        path.write_bytes(b"before")
        recorder = Recorder(root, MemoryStore())
        await recorder.begin()
        await recorder.take()
        times = path.stat()
        path.write_bytes(b"after!")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

        entry = await recorder.take()

        assert entry is not None
        recorder.close()

    asyncio.run(scenario())


def test_w10_a_last_look_trusts_no_time_stamp_at_all(root: Path) -> None:
    """A store into mapped memory can leave every time stamp as it was."""

    async def scenario() -> None:
        (root / "file").write_bytes(b"x" * 1000)
        recorder = Recorder(root, MemoryStore())
        await recorder.begin()
        await recorder.take()
        snapshotter = recorder.snapshotter
        assert snapshotter is not None
        before = snapshotter.bytes_read

        assert await recorder.take(reread=True) is None

        assert snapshotter.bytes_read >= before + 1000
        recorder.close()

    asyncio.run(scenario())


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


def test_w13_a_frame_that_grows_beyond_its_limit_is_refused_unread() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(FRAME_LIMIT + 1))
    unsized = zstandard.ZstdCompressor().compressobj().compress(b"x")

    for frame in (bomb, unsized, b"", b"rubbish"):
        with pytest.raises(CorruptObject):
            unpack(frame)


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
