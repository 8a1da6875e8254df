"""Workspaces that are changed while a snapshot is taken of them."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from makers_snapshots import Recorder, collect, problems
from stayer_evaluator.snapshots.manifest import Node, Tree, pieces_of
from stayer_evaluator.snapshots.pack import CHUNK, cut, unpack
from stayer_evaluator.snapshots.reading import Reading
from stayer_evaluator.snapshots.walk import NEW, Scan, Step, Unread, Walk
from stayer_evaluator.storage.memory import MemoryStore

SECRET = b"SECRET-OF-THE-SIDECAR"


def contents(store: MemoryStore, tree: Tree) -> set[bytes]:
    """Every content that the tree refers to."""
    return {
        cut(unpack(store.objects[p.pack][p.offset : p.offset + p.length]), p)
        for p in pieces_of(tree).values()
    }


def whole(store: MemoryStore, file: Node) -> bytes:
    """The file's content, from its pieces."""
    return b"".join(
        cut(unpack(store.objects[p.pack][p.offset : p.offset + p.length]), p) for p in file.pieces
    )


@contextmanager
def meanwhile(program: str, *arguments: object) -> Iterator[None]:
    """The body runs while another process repeats the program: a thread of ours would be held up
    by the interpreter in just those moments that matter.
    """
    lines = "\n    ".join(program.strip().splitlines())
    source = f"import os, sys, itertools\nfor number in itertools.count(1):\n    {lines}\n"
    source += "    if number == 1:\n        print(flush=True)\n"
    command = [sys.executable, "-c", source, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        try:
            yield
            assert process.poll() is None, "it had ended before"
        finally:
            process.kill()


SWAP_LEAF = """
secret, leaf, spare = sys.argv[1:]
os.symlink(secret, spare)
os.rename(spare, leaf)
os.close(os.open(spare, os.O_WRONLY | os.O_CREAT))
os.rename(spare, leaf)
"""
SWAP_PARENT = """
folder, aside, link = sys.argv[1:]
os.rename(folder, aside)
os.rename(link, folder)
os.rename(folder, link)
os.rename(aside, folder)
"""


def test_w1_a_leaf_swapped_for_a_link_never_leaks_what_it_points_to(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(SECRET)

    with meanwhile(SWAP_LEAF, tmp_path / "secret", root / "leaf", root / "spare"):
        for _ in range(100):
            store = MemoryStore()
            assert SECRET not in contents(store, collect(root, store, settled=False).tree)


def test_w1_a_parent_swapped_for_a_link_never_leads_outside(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    folder, aside, link = root / "folder", root / "aside", root / "link"
    folder.mkdir()
    (folder / "file").write_bytes(b"harmless")
    link.symlink_to(outside)

    with meanwhile(SWAP_PARENT, folder, aside, link):
        for _ in range(100):
            store = MemoryStore()
            assert SECRET not in contents(store, collect(root, store, settled=False).tree)


NULL_DEVICE = ("/dev", "null")


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "nothing", "device"])
@pytest.mark.parametrize("looked_at", ["not looked at", "small", "large"])
def test_w4_a_file_that_turns_into_something_else_before_it_is_read_is_absent(
    root: Path, kind: str, looked_at: str
) -> None:
    make: dict[str, Callable[[Path], object]] = {
        "fifo": os.mkfifo,
        "folder": Path.mkdir,
        "link": lambda path: path.symlink_to("/etc/passwd"),
        "nothing": lambda path: None,
        "device": lambda path: None,
    }
    make[kind](root / "file")
    directory, name = NULL_DEVICE if kind == "device" else (root, "file")
    fd = os.open(directory, os.O_RDONLY)
    listing = {name: NEW}
    sizes = {"not looked at": [], "small": [10], "large": [2 * CHUNK]}[looked_at]
    unread = [Unread("", name, (size, 1, 1, 1, 0o100644)) for size in sizes]
    with ThreadPoolExecutor(2) as pool:
        reading = Reading(fd, Scan(0), 1 << 40, set(), pool, 2)
        step = Step(fd, "", listing, [] if sizes else [name], unread)
        assert list(reading.packs([step])) == []
    os.close(fd)

    assert not reading.plain
    assert [content.problem for content in reading.contents] == ["vanished"]


@pytest.mark.parametrize("took", [0.0, 1.5], ids=["", "after a long wait"])
@pytest.mark.parametrize(
    ("size", "at"), [(100, 0), (3 * CHUNK, CHUNK)], ids=["read at once", "read in chunks"]
)
def test_w9_a_file_that_is_written_as_it_is_read_is_read_again(
    root: Path, size: int, at: int, took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, just after its bytes were taken: only its times tell, and they tell however long
    the reading took.
    """
    path = root / "file"
    path.write_bytes(b"old" + bytes(size))
    plain, now = os.preadv, time.time_ns
    first = [True]

    def read_then_write(fd: int, buffers: list[memoryview], offset: int) -> int:
        found = plain(fd, buffers, offset)
        if offset == at and first:
            first.clear()
            path.write_bytes(b"new" + bytes(size))
        return found

    monkeypatch.setattr(os, "preadv", read_then_write)
    monkeypatch.setattr(time, "time_ns", lambda: now() - int(took * 1e9 * bool(first)))
    store = MemoryStore()

    collected = collect(root, store)

    assert whole(store, collected.tree[b"file"]).startswith(b"new")
    assert not collected.reports


def test_w9_a_file_that_a_file_system_gives_in_parts_is_read_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(200))
    (root / "file").write_bytes(content)
    plain = os.preadv
    parts = iter([70])

    def read_in_parts(fd: int, buffers: list[memoryview], offset: int) -> int:
        return plain(fd, [buffer[: next(parts, None)] for buffer in buffers], offset)

    monkeypatch.setattr(os, "preadv", read_in_parts)
    store = MemoryStore()

    collected = collect(root, store)

    assert whole(store, collected.tree[b"file"]) == content


@pytest.mark.parametrize("size", [10, 2 * CHUNK])
def test_w6_a_file_that_has_outgrown_the_limit_by_the_time_it_is_read_is_left_out(
    root: Path, size: int
) -> None:
    (root / "file").touch()
    os.truncate(root / "file", 1 << 40)
    fd = os.open(root, os.O_RDONLY)
    with ThreadPoolExecutor(2) as pool:
        reading = Reading(fd, Scan(0, bytes=size), 4 * CHUNK, set(), pool, 2)
        file = Unread("", "file", (size, 1, 1, 1, 0o100644))
        assert list(reading.packs([Step(fd, "", {"file": NEW}, [], [file])])) == []
    os.close(fd)

    assert [content.problem for content in reading.contents] == ["too_large"]


def test_w4_a_name_that_is_listed_twice_and_gone_is_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file system may do where it was made anew while its directory was read."""
    (root / "file").touch()
    (root / "folder").mkdir()

    def twice(walk: Walk, directory: str, found: Iterable[os.DirEntry[str]]) -> object:
        entries = [entry for entry in found for _ in range(2)]
        (root / "file").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(Walk, "_arrange", twice)

    assert collect(root).tree.keys() == {b"folder"}


def test_w4_a_file_that_somebody_holds_a_lease_on_is_reported_and_looked_at_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it without waiting is refused, and no time stamp tells when it no longer is."""
    (root / "file").write_bytes(b"content")
    leased, plain = [True], os.open

    def refused(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "file" and leased:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return plain(path, flags, mode, dir_fd=dir_fd)

    async def scenario() -> None:
        recorder = Recorder(root, MemoryStore())
        await recorder.begin()
        monkeypatch.setattr(os, "open", refused)
        first = await recorder.take()
        leased.clear()
        second = await recorder.take()
        recorder.close()
        assert first is not None
        assert second is not None
        assert problems(first.reports) == {"file": "unreadable"}
        assert [record.path for record in second.changed] == ["file"]

    asyncio.run(scenario())


COUNT_UP = """
fd = os.open(sys.argv[1], os.O_WRONLY) if number == 1 else fd
os.pwrite(fd, number.to_bytes(8, "big"), 0)
os.pwrite(fd, number.to_bytes(8, "big"), int(sys.argv[2]))
"""
RESIZE = """
size = int(sys.argv[2])
os.truncate(sys.argv[1], (size, size // 2, 2 * size)[number % 3])
"""


@pytest.mark.parametrize("size", [900_000, 3 * CHUNK], ids=["read at once", "read in chunks"])
def test_w9_a_file_that_never_holds_still_is_a_state_it_had_or_reported(
    root: Path, size: int
) -> None:
    """Its last bytes are written after its first: what a reader puts together from before and
    after would have a newer end than beginning.
    """
    path = root / "busy"
    path.write_bytes(bytes(size))

    with meanwhile(COUNT_UP, path, size - 8):
        for _ in range(20):
            store = MemoryStore()
            collected = collect(root, store)
            content = whole(store, collected.tree[b"busy"])
            first, last = (int.from_bytes(content[at : at + 8], "big") for at in (0, size - 8))
            assert len(content) == size
            assert problems(collected.reports) == {"busy": "unstable"} or first in (last, last + 1)


@pytest.mark.parametrize("size", [100, 3 * CHUNK])
def test_w9_growing_and_shrinking_files_are_stored_at_a_size_they_had(
    root: Path, size: int
) -> None:
    path = root / "moving"
    path.write_bytes(b"x" * size)

    with meanwhile(RESIZE, path, size):
        for _ in range(10):
            collected = collect(root)
            node = collected.tree[b"moving"]
            assert node.size == sum(piece.size for piece in node.pieces)
            assert node.size in (size // 2, size, 2 * size) or collected.reports


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
