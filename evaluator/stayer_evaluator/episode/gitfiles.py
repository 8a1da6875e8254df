"""The few file formats of git that an initial commit needs: pack, pack index, index, trees."""

import hashlib
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, Self

ObjectKind = Literal["commit", "tree", "blob"]
_KINDS: dict[ObjectKind, int] = {"commit": 1, "tree": 2, "blob": 3}
_PIECE = 1024 * 1024
_WORD = 0xFFFFFFFF

AUTHOR = b"stayer <stayer@stayer.local>"
DATE = 1577836800
"""2020-01-01: a fixed date makes equal trees equal commits."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A file or link of the commit."""

    path: bytes
    mode: int
    id: bytes
    seen: os.stat_result


class PackWriter:
    """Writes one pack with its index into a directory; a context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._partial = directory / "partial"
        self._file: BinaryIO = self._partial.open("wb+")
        self._offsets: dict[bytes, int] = {}
        self._sums: dict[bytes, int] = {}
        self._file.write(b"PACK" + struct.pack(">II", 2, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self._close()
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def add(self, kind: ObjectKind, content: bytes) -> bytes:
        """Store an object; returns its id. What is there already is not stored again."""
        id_ = _hash(kind, len(content), content).digest()
        if id_ not in self._offsets:
            self._begin(kind, len(content)).write(content).end(id_)
        return id_

    def add_file(self, file: BinaryIO, size: int) -> bytes:
        """Store a blob of exactly `size` bytes without holding it whole in memory.

        Raises OSError when the file has another size by now.
        """
        if size <= _PIECE:
            return self.add("blob", _exactly(file, size))
        hasher = _hash("blob", size, b"")
        entry = self._begin("blob", size)
        for start in range(0, size, _PIECE):
            piece = _exactly(file, min(_PIECE, size - start))
            hasher.update(piece)
            entry.write(piece)
        id_ = hasher.digest()
        if id_ in self._offsets:
            entry.cancel()
        else:
            entry.end(id_)
        return id_

    def _begin(self, kind: ObjectKind, size: int) -> "_Entry":
        return _Entry(self._file, _entry_header(_KINDS[kind], size), self._settle)

    def _settle(self, id_: bytes, offset: int, checksum: int) -> None:
        self._offsets[id_] = offset
        self._sums[id_] = checksum

    def _close(self) -> None:
        self._file.seek(8)
        self._file.write(struct.pack(">I", len(self._offsets)))
        self._file.seek(0)
        hasher = hashlib.sha1(usedforsecurity=False)
        while piece := self._file.read(_PIECE):
            hasher.update(piece)
        self._file.write(hasher.digest())
        name = f"pack-{hasher.hexdigest()}"
        index = pack_index(self._offsets, self._sums, hasher.digest())
        (self._directory / f"{name}.idx").write_bytes(index)
        self._file.flush()
        self._partial.rename(self._directory / f"{name}.pack")


@dataclass(slots=True)
class _Entry:
    """An object that is being written to a pack."""

    file: BinaryIO
    header: bytes
    settle: object
    start: int = field(init=False)
    checksum: int = field(init=False)
    packer: "zlib._Compress" = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.file.tell()
        self.checksum = 0
        self.packer = zlib.compressobj(1)
        self._put(self.header)

    def write(self, content: bytes) -> Self:
        self._put(self.packer.compress(content))
        return self

    def end(self, id_: bytes) -> None:
        self._put(self.packer.flush())
        assert callable(self.settle)
        self.settle(id_, self.start, self.checksum)

    def cancel(self) -> None:
        self.file.seek(self.start)
        self.file.truncate()

    def _put(self, data: bytes) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        self.file.write(data)


def _entry_header(kind: int, size: int) -> bytes:
    """Type and size as git packs write them: 4 bits of size first, then 7 a byte."""
    first = kind << 4 | size & 15
    size >>= 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    out.append(first)
    return bytes(out)


def _hash(kind: ObjectKind, size: int, content: bytes) -> "hashlib._Hash":
    hasher = hashlib.sha1(f"{kind} {size}\0".encode(), usedforsecurity=False)
    hasher.update(content)
    return hasher


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise OSError(f"a file has changed while it was read: {len(data)} bytes, expected {size}")
    return data


def pack_index(offsets: dict[bytes, int], sums: dict[bytes, int], pack: bytes) -> bytes:
    """A pack index of version 2."""
    ids = sorted(offsets)
    fan = [0] * 256
    for id_ in ids:
        fan[id_[0]] += 1
    for byte in range(1, 256):
        fan[byte] += fan[byte - 1]
    far = [offsets[id_] for id_ in ids if offsets[id_] >= 1 << 31]
    places = {offset: 1 << 31 | number for number, offset in enumerate(far)}
    body = b"".join(
        (
            b"\xfftOc" + struct.pack(">I", 2),
            struct.pack(">256I", *fan),
            *ids,
            struct.pack(f">{len(ids)}I", *(sums[id_] for id_ in ids)),
            struct.pack(f">{len(ids)}I", *(places.get(offsets[i], offsets[i]) for i in ids)),
            struct.pack(f">{len(far)}Q", *far),
            pack,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def tree_ids(blobs: Sequence[Blob], pack: PackWriter) -> bytes:
    """Store the trees above the blobs, deepest first; returns the id of the topmost."""
    children: dict[bytes, list[tuple[bytes, int, bytes]]] = {b"": []}
    for blob in blobs:
        folder, _, name = blob.path.rpartition(b"/")
        children.setdefault(folder, []).append((name, blob.mode, blob.id))
        while folder:
            folder = folder.rpartition(b"/")[0]
            children.setdefault(folder, [])
    for folder in sorted(children, key=lambda path: path.count(b"/"), reverse=True):
        if folder:
            above, _, name = folder.rpartition(b"/")
            children[above].append((name, 0o40000, pack.add("tree", _tree(children[folder]))))
    return pack.add("tree", _tree(children[b""]))


def _tree(entries: list[tuple[bytes, int, bytes]]) -> bytes:
    """Git sorts a directory as if its name ended in a slash."""
    entries.sort(key=lambda entry: entry[0] + b"/" if entry[1] == 0o40000 else entry[0])
    return b"".join(b"%o %b\0%b" % (mode, name, id_) for name, mode, id_ in entries)


def commit_bytes(tree: bytes) -> bytes:
    """A commit without parents."""
    who = b"%b %d +0000" % (AUTHOR, DATE)
    return b"tree %b\nauthor %b\ncommitter %b\n\nbase\n" % (tree.hex().encode(), who, who)


def index_bytes(blobs: Sequence[Blob]) -> bytes:
    """An index of version 2 that agrees with the files, so that git need not read them again."""
    body = b"DIRC" + struct.pack(">II", 2, len(blobs)) + b"".join(map(_index_entry, blobs))
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _index_entry(blob: Blob) -> bytes:
    seen = blob.seen
    head = struct.pack(
        ">10I20sH",
        *_time(seen.st_ctime_ns),
        *_time(seen.st_mtime_ns),
        seen.st_dev & _WORD,
        seen.st_ino & _WORD,
        blob.mode,
        seen.st_uid & _WORD,
        seen.st_gid & _WORD,
        seen.st_size & _WORD,
        blob.id,
        min(len(blob.path), 0xFFF),
    )
    entry = head + blob.path
    return entry + b"\0" * (8 - len(entry) % 8)


def _time(nanoseconds: int) -> tuple[int, int]:
    return (nanoseconds // 10**9) & _WORD, nanoseconds % 10**9
