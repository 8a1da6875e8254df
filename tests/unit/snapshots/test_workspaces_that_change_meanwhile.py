"""Workspaces that are changed while a snapshot is taken of them."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from makers_snapshots import Recorder, collect, problems
from stayer_evaluator.snapshots.manifest import Tree, pieces_of
from stayer_evaluator.snapshots.pack import CHUNK, cut, unpack
from stayer_evaluator.snapshots.reading import Reading
from stayer_evaluator.snapshots.walk import Unread
from stayer_evaluator.storage.memory import MemoryStore

SECRET = b"SECRET-OF-THE-SIDECAR"


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
