"""Reads and compresses the files a walk asks for, in threads, into packs.

Hashing, compressing and reading release the interpreter lock, so a few threads keep the cores
busy; a bounded number of batches is in flight, whatever the tree's size.
"""

import itertools
import os
import stat
import time
from collections import deque
from collections.abc import Container, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import zstandard

from stayer_evaluator.snapshots.index import Problem, Signature
from stayer_evaluator.snapshots.pack import (
    CHUNK,
    LEVEL,
    Frame,
    Pack,
    PackBuilder,
    content_hash,
    make_frame,
)
from stayer_evaluator.snapshots.walk import OPEN_DIRECTORY, Unread, settled, signature_of

OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
BATCH_FILES = 128
BATCH_BYTES = 2 * CHUNK
TRIES = 3
"""Readings of a file that changes under the reader before it is taken as it is."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a reading gave. `signature` None: read it again next time."""

    file: Unread
    signature: Signature | None
    soft: Signature | None
    hashes: tuple[str, ...] = ()
    problem: Problem | None = None
    detail: str = ""


@dataclass(slots=True)
class _Batch:
    contents: list[Content] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    large: list[Unread] = field(default_factory=list)
    bytes: int = 0


class Reading:
    """One pass over the unread files of a walk. Iterate `packs`, then look at `contents`."""

    def __init__(
        self, root: int, known: Container[str], pool: ThreadPoolExecutor, workers: int
    ) -> None:
        self.contents: list[Content] = []
        self.bytes = 0
        self._root = root
        self._known = known
        self._pool = pool
        self._window = 2 * workers
        self._builder = PackBuilder()
        self._packed: set[str] = set()

    def packs(self, files: list[Unread]) -> Generator[Pack, None, None]:
        """Packs of contents that are not known yet, as they fill up; the rest at the end."""
        small = [file for file in files if file.signature[0] < CHUNK]
        large = [file for file in files if file.signature[0] >= CHUNK]
        for batch in self._batches(small):
            self.contents += batch.contents
            self.bytes += batch.bytes
            large += batch.large
            for frame in batch.frames:
                yield from self._add(frame)
        for file in large:
            yield from self._read_large(file)
        if self._builder.frames:
            yield self._finish()

    def _batches(self, files: list[Unread]) -> Iterator[_Batch]:
        waiting: deque[Future[_Batch]] = deque()
        for group in _grouped(files):
            waiting.append(self._pool.submit(self._read_batch, group))
            if len(waiting) > self._window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _read_batch(self, files: list[Unread]) -> _Batch:
        """Files of one directory. Runs in a thread."""
        batch = _Batch()
        try:
            directory = open_directory(self._root, files[0].directory)
        except OSError as error:
            batch.contents = [_lost(file, error) for file in files]
            return batch
        try:
            compressor = zstandard.ZstdCompressor(level=LEVEL)
            for file in files:
                self._read_small(directory, file, batch, compressor)
        finally:
            os.close(directory)
        return batch

    def _read_small(
        self,
        directory: int,
        file: Unread,
        batch: _Batch,
        compressor: zstandard.ZstdCompressor,
    ) -> None:
        try:
            fd = os.open(file.name, OPEN_FILE, dir_fd=directory)
        except OSError as error:
            batch.contents.append(_lost(file, error))
            return
        try:
            result = _read_stable(fd)
        finally:
            os.close(fd)
        if result is None:
            batch.contents.append(Content(file, None, None, (), "vanished", "became another type"))
            return
        data, signature, read_at, stable = result
        if data is None:
            batch.large.append(file)
            return
        batch.bytes += len(data)
        digest = content_hash(data)
        batch.contents.append(
            _content(file, signature, read_at, (digest,) if data else (), stable=stable)
        )
        if data and digest not in self._known and digest not in self._packed:
            batch.frames.append(make_frame(digest, data, compressor))

    def _read_large(self, file: Unread) -> Iterator[Pack]:
        try:
            directory = open_directory(self._root, file.directory)
        except OSError as error:
            self.contents.append(_lost(file, error))
            return
        try:
            fd = os.open(file.name, OPEN_FILE, dir_fd=directory)
        except OSError as error:
            self.contents.append(_lost(file, error))
            return
        finally:
            os.close(directory)
        try:
            yield from self._read_chunks(fd, file)
        finally:
            os.close(fd)

    def _read_chunks(self, fd: int, file: Unread) -> Iterator[Pack]:
        for attempt in range(1, TRIES + 1):
            before = os.fstat(fd)
            read_at = time.time_ns()
            if not stat.S_ISREG(before.st_mode):
                self.contents.append(
                    Content(file, None, None, (), "vanished", "became another type")
                )
                return
            hashes: list[str] = []
            read = 0
            for digest, frame, size in self._chunks(fd, before.st_size):
                hashes.append(digest)
                read += size
                if frame is not None:
                    yield from self._add(frame)
            after = signature_of(os.fstat(fd))
            stable = after == signature_of(before) and read == before.st_size
            if stable or attempt == TRIES:
                signature = (read, *after[1:])
                self.contents.append(
                    _content(file, signature, read_at, tuple(hashes), stable=stable)
                )
                return

    def _chunks(self, fd: int, size: int) -> Iterator[tuple[str, Frame | None, int]]:
        """Chunks of a file up to `size`, hashed and compressed in the pool, in order."""
        waiting: deque[Future[tuple[str, Frame | None, int]]] = deque()
        for offset in range(0, size, CHUNK):
            data = _read_chunk(fd, offset, min(CHUNK, size - offset))
            self.bytes += 0 if data is None else len(data)
            if data == b"":
                break
            plain = data if data is not None else bytes(min(CHUNK, size - offset))
            waiting.append(self._pool.submit(self._compress, plain))
            if len(waiting) > self._window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _compress(self, data: bytes) -> tuple[str, Frame | None, int]:
        digest = content_hash(data)
        if digest in self._known or digest in self._packed:
            return digest, None, len(data)
        compressor = zstandard.ZstdCompressor(level=LEVEL)
        return digest, make_frame(digest, data, compressor), len(data)

    def _add(self, frame: Frame) -> Iterator[Pack]:
        if frame.hash in self._packed:
            return
        self._packed.add(frame.hash)
        self._builder.add(frame)
        if self._builder.full:
            yield self._finish()

    def _finish(self) -> Pack:
        return self._builder.finish()


def open_directory(root: int, directory: str) -> int:
    """A descriptor of `directory` ("" or with trailing slash) below `root`, no link followed.

    Raises OSError when a part is missing, is no directory or is a link.
    """
    fd = os.open(".", OPEN_DIRECTORY, dir_fd=root)
    for name in directory.split("/")[:-1]:
        try:
            child = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = child
    return fd


def _grouped(files: list[Unread]) -> Iterator[list[Unread]]:
    """Files of one directory each, in groups small enough to be spread over the threads."""
    for _, same in itertools.groupby(files, key=lambda file: file.directory):
        group: list[Unread] = []
        size = 0
        for file in same:
            group.append(file)
            size += file.signature[0]
            if len(group) >= BATCH_FILES or size >= BATCH_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group


def _read_stable(fd: int) -> tuple[bytes | None, Signature, int, bool] | None:
    """Stat, read, stat, until both agree or TRIES are spent.

    Gives data (None: too large for one piece), signature, time of reading and whether it was
    stable; None when it is no regular file.
    """
    for attempt in range(1, TRIES + 1):
        before = os.fstat(fd)
        read_at = time.time_ns()
        if not stat.S_ISREG(before.st_mode):
            return None
        if before.st_size >= CHUNK:
            return None, signature_of(before), read_at, True
        data = os.pread(fd, before.st_size + 1, 0)
        after = signature_of(os.fstat(fd))
        stable = after == signature_of(before) and len(data) == before.st_size
        if stable or attempt == TRIES:
            return data, (len(data), *after[1:]), read_at, stable
    raise AssertionError("TRIES is at least 1")


def _read_chunk(fd: int, offset: int, length: int) -> bytes | None:
    """Bytes at `offset`, fewer at the end of the file; None for a hole (security.md W5)."""
    try:
        if os.lseek(fd, offset, os.SEEK_DATA) >= offset + length:
            return None
    except OSError:  # no data to the end of the file, or it is shorter now
        if os.fstat(fd).st_size < offset + length:
            return os.pread(fd, length, offset)
        return None
    return os.pread(fd, length, offset)


def _content(
    file: Unread, signature: Signature, read_at: int, hashes: tuple[str, ...], *, stable: bool
) -> Content:
    if not stable:
        return Content(file, None, signature, hashes, "unstable", f"changed in {TRIES} readings")
    problem: Problem | None = "setuid_stripped" if signature[4] & 0o6000 else None
    return Content(file, settled(signature, read_at), signature, hashes, problem)


def _lost(file: Unread, error: OSError) -> Content:
    if isinstance(error, PermissionError):
        return Content(file, None, None, (), "unreadable", error.strerror or "")
    return Content(file, None, None, (), "vanished", error.strerror or "")
