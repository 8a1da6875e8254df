"""Workspaces with too much of something: bytes, holes, files, levels."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from makers_snapshots import collect, problems, restored
from stayer_evaluator.snapshots.ordered_walk import OrderedWalk
from stayer_evaluator.snapshots.pack import CHUNK, FRAME_LIMIT, unpack
from stayer_evaluator.snapshots.reading import Reading
from stayer_evaluator.snapshots.walk import NEW, Limits, Overflow, Scan, Step
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.memory import MemoryStore


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


def test_w6_new_files_beyond_the_byte_limit_are_not_read_to_the_end(root: Path) -> None:
    """Their sizes are known only once they are read, and a folder may hold any number of them."""
    for number in range(100):
        (root / f"f{number:02}").write_bytes(bytes([number]) * 10_000)
    scan = Scan(time.time_ns())
    fd = os.open(root, os.O_RDONLY)
    with ThreadPoolExecutor(1) as pool:
        reading = Reading(fd, scan, 100_000, set(), pool, 1)
        names = sorted(path.name for path in root.iterdir())
        with pytest.raises(Overflow):
            list(reading.packs([Step(fd, "", dict.fromkeys(names, NEW), names, [])]))
    os.close(fd)

    assert reading.bytes == 100_000


def test_w5_a_giant_costs_its_neighbours_no_second_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree beyond the limits is looked at from the start again, in order; one file alone is no
    reason to.
    """
    with (root / "giant").open("wb") as file:
        file.truncate(1 << 40)
    (root / "neighbour").write_bytes(b"content")
    monkeypatch.setattr(OrderedWalk, "steps", None, raising=False)

    collected = collect(root)

    assert problems(collected.reports) == {"giant": "sparse_capped"}
    assert collected.tree.keys() == {b"neighbour"}


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


def test_w13_a_frame_that_grows_beyond_its_limit_is_refused_unread() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(FRAME_LIMIT + 1))
    unsized = zstandard.ZstdCompressor().compressobj().compress(b"x")

    for frame in (bomb, unsized, b"", b"rubbish"):
        with pytest.raises(CorruptObject):
            unpack(frame)
