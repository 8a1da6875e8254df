"""Reads and compresses the files a walk asks for, in threads, into packs.

Hashing, compressing and reading release the interpreter lock, so a few threads keep the cores
busy; a bounded number of batches is in flight, whatever the tree's size.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Container, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from stayer_evaluator.snapshots.directories import Directories
from stayer_evaluator.snapshots.index import Problem, Signature
from stayer_evaluator.snapshots.pack import CHUNK, Frame, Pack, PackBuilder, content_hash
from stayer_evaluator.snapshots.walk import Unread, settled, signature_of

OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
BATCH_FILES = 128
BATCH_FOLDERS = 32
TRIES = 3
"""Readings of a file that changes under the reader before it is taken as it is."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Content:
    """What a reading gave. `signature` None: read it again next time."""

    file: Unread
    signature: Signature | None
    soft: Signature | None
    """None: there is no content."""
    hashes: tuple[str, ...] = ()
    problem: Problem | None = None
    detail: str = ""


@dataclass(slots=True)
class _Batch:
    """Neighbouring files and what became of them. Its descriptors are its own."""

    folders: list[tuple[int, list[Unread]]] = field(default_factory=list)
    files: int = 0
    size: int = 0
    contents: list[Content] = field(default_factory=list)
    large: list[Unread] = field(default_factory=list)
    frame: Frame = field(default_factory=Frame)
    bytes: int = 0

    @property
    def full(self) -> bool:
        return (
            self.size >= CHUNK or self.files >= BATCH_FILES or (len(self.folders) >= BATCH_FOLDERS)
        )


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
        jobs = (self._pool.submit(self._read_batch, batch) for batch in self._batches(small))
        for batch in self._in_order(jobs):
            self.contents += batch.contents
            self.bytes += batch.bytes
            large += batch.large
            yield from self._add(batch.frame)
        for file in large:
            yield from self._read_large(file)
        if self._builder.frames:
            yield self._builder.finish()

    def _in_order(self, jobs: Iterator[Future[T]]) -> Iterator[T]:
        """Results in order, with a bounded number of jobs under way."""
        waiting: deque[Future[T]] = deque()
        for job in jobs:
            waiting.append(job)
            if len(waiting) > self._window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _batches(self, files: list[Unread]) -> Iterator[_Batch]:
        """The files in batches, every directory opened once."""
        batch = _Batch()
        here: str | None = None
        with Directories(self._root) as directories:
            for file in files:
                if file.directory != here or not batch.folders:
                    here = file.directory
                    try:
                        batch.folders.append((os.dup(directories.open(here)), []))
                    except OSError as error:
                        self.contents.append(_lost(file, error))
                        here = None
                        continue
                batch.folders[-1][1].append(file)
                batch.files += 1
                batch.size += file.signature[0]
                if batch.full:
                    yield batch
                    batch = _Batch()
        if batch.folders:
            yield batch

    def _read_batch(self, batch: _Batch) -> _Batch:
        """Runs in a thread."""
        read_at = time.time_ns()
        for directory, files in batch.folders:
            try:
                for file in files:
                    self._read_small(directory, file, read_at, batch)
            finally:
                os.close(directory)
        if batch.frame.members:
            batch.frame.compress()
        return batch

    def _read_small(self, directory: int, file: Unread, read_at: int, batch: _Batch) -> None:
        try:
            fd = os.open(file.name, OPEN_FILE, dir_fd=directory)
        except OSError as error:
            batch.contents.append(_lost(file, error))
            return
        try:
            data, signature, stable = _read_stable(fd, file.signature)
        except _OtherType:
            batch.contents.append(_changed_type(file))
            return
        except _Large:
            batch.large.append(file)
            return
        finally:
            os.close(fd)
        batch.bytes += len(data)
        hashes: tuple[str, ...] = ()
        if data:
            digest = content_hash(data)
            hashes = (digest,)
            if digest not in self._known and digest not in self._packed:
                batch.frame.add(digest, data)
        batch.contents.append(_content(file, signature, read_at, hashes, stable=stable))

    def _read_large(self, file: Unread) -> Iterator[Pack]:
        try:
            with Directories(self._root) as directories:
                fd = os.open(file.name, OPEN_FILE, dir_fd=directories.open(file.directory))
        except OSError as error:
            self.contents.append(_lost(file, error))
            return
        try:
            yield from self._read_chunks(fd, file)
        finally:
            os.close(fd)

    def _read_chunks(self, fd: int, file: Unread) -> Iterator[Pack]:
        for attempt in range(1, TRIES + 1):
            before = os.fstat(fd)
            read_at = time.time_ns()
            if not stat.S_ISREG(before.st_mode):
                self.contents.append(_changed_type(file))
                return
            hashes: list[str] = []
            read = 0
            for digest, frame, size in self._in_order(self._chunks(fd, before.st_size)):
                hashes.append(digest)
                read += size
                yield from self._add(frame)
            after = signature_of(os.fstat(fd))
            stable = after == signature_of(before) and read == before.st_size
            if stable or attempt == TRIES:
                signature = (read, *after[1:])
                self.contents.append(
                    _content(file, signature, read_at, tuple(hashes), stable=stable)
                )
                return

    def _chunks(self, fd: int, size: int) -> Iterator[Future[tuple[str, Frame, int]]]:
        """Chunks of a file up to `size`, hashed and compressed in the pool."""
        for offset in range(0, size, CHUNK):
            length = min(CHUNK, size - offset)
            data = _read_chunk(fd, offset, length)
            if data is None:
                data = bytes(length)
            elif not data:
                return
            else:
                self.bytes += len(data)
            yield self._pool.submit(self._compress, data)

    def _compress(self, data: bytes) -> tuple[str, Frame, int]:
        digest = content_hash(data)
        frame = Frame()
        if digest not in self._known and digest not in self._packed:
            frame.add(digest, data)
            frame.compress()
        return digest, frame, len(data)

    def _add(self, frame: Frame) -> Iterator[Pack]:
        """Take a frame into the pack, unless nothing in it is new."""
        new = {member[0] for member in frame.members} - self._packed
        if not new:
            return
        self._packed |= new
        self._builder.add(frame)
        if self._builder.full:
            yield self._builder.finish()


class _OtherType(Exception):  # noqa: N818 (steers, is no error)
    """It is no regular file any more."""


class _Large(Exception):  # noqa: N818 (steers, is no error)
    """It has grown beyond what is read in one piece."""


def _read_stable(fd: int, walked: Signature) -> tuple[bytes, Signature, bool]:
    """Stat, read, stat, until both agree or TRIES are spent: data, signature, whether stable.

    The walk's own stat is the first one of the first try. Raises _OtherType, _Large.
    """
    before = walked
    for attempt in range(1, TRIES + 1):
        try:
            data = os.pread(fd, before[0] + 1, 0)
        except OSError:  # a fifo or directory in its place; anything else fails again below
            data = None
        after = signature_of(os.fstat(fd))
        if not stat.S_ISREG(after[4]):
            raise _OtherType
        if after[0] >= CHUNK:
            raise _Large
        if data is None:
            data = os.pread(fd, after[0] + 1, 0)
        stable = after == before and len(data) == before[0]
        if stable or attempt == TRIES:
            return data, (len(data), *after[1:]), stable
        before = after
    raise AssertionError("TRIES is at least 1")


def _read_chunk(fd: int, offset: int, length: int) -> bytes | None:
    """Bytes at `offset`, fewer at the end of the file; None for a hole (security.md W5)."""
    try:
        if os.lseek(fd, offset, os.SEEK_DATA) >= offset + length:
            return None
    except OSError:  # no data up to the end of the file, or the file is shorter now
        if os.fstat(fd).st_size >= offset + length:
            return None
    return os.pread(fd, length, offset)


def _content(
    file: Unread, signature: Signature, read_at: int, hashes: tuple[str, ...], *, stable: bool
) -> Content:
    if not stable:
        return Content(file, None, signature, hashes, "unstable", f"changed in {TRIES} readings")
    problem: Problem | None = "setuid_stripped" if signature[4] & 0o6000 else None
    return Content(file, settled(signature, read_at), signature, hashes, problem)


def _changed_type(file: Unread) -> Content:
    return Content(file, None, None, (), "vanished", "became another type")


def _lost(file: Unread, error: OSError) -> Content:
    problem: Problem = "unreadable" if isinstance(error, PermissionError) else "vanished"
    return Content(file, None, None, (), problem, error.strerror or "")
