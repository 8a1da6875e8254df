"""Reads and compresses the files that a walk asks for, into packs.

A bounded number of frames is under way, whatever the tree's size.
"""

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from blake3 import blake3

from stayer_evaluator.records.queue import PathProblem
from stayer_evaluator.snapshots.directories import Directories
from stayer_evaluator.snapshots.index import Listing, Signature
from stayer_evaluator.snapshots.pack import CHUNK, Draft, Frame, Pack, PackBuilder
from stayer_evaluator.snapshots.walk import (
    Overflow,
    Scan,
    Step,
    Unread,
    oversized,
    settled,
    signature_of,
    still,
)

OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV})
"""What opening a path gives once something else, or nothing, is in its place."""
NO_POSITIONS = frozenset({errno.ESPIPE, errno.EISDIR, errno.EINVAL, errno.ENXIO})
"""What reading at a position gives for a fifo, a directory or a device."""
NO_SIGNATURE = (0, 0, 0, 0, 0)
"""That of no file: it is looked at again next time."""
SET_ID = stat.S_ISUID | stat.S_ISGID
TRIES = 3
"""Readings of a file that changes under the reader before it is taken as it is."""


class Content(NamedTuple):
    """What a reading gave. `signature` None: read it again next time."""

    file: Unread
    signature: Signature | None
    soft: Signature | None
    """None: there is no content."""
    hashes: tuple[str, ...] = ()
    problem: PathProblem | None = None
    detail: str = ""

    @property
    def moving(self) -> bool:
        """Changed while it was read, or so shortly before that nobody can tell."""
        return self.soft is not None and self.signature is None


Plain = tuple[Listing, str, Signature, str]
"""A small file that held still: where its placeholder is, name, signature, hash ("": empty)."""


class Reading:
    """One pass over what a walk asks for. Iterate `packs`, then look at `plain` and `contents`.

    One thread reads and hashes, as the interpreter would not let two do so side by side; others
    compress meanwhile. `limit` is that of the scan's bytes; `known` are the contents that need not
    be packed, those that are being packed are added.
    """

    def __init__(
        self,
        root: int,
        scan: Scan,
        limit: int,
        known: set[str],
        pool: ThreadPoolExecutor,
        workers: int,
    ) -> None:
        self.plain: list[Plain] = []
        self.contents: list[Content] = []
        """Of all other files."""
        self.bytes = 0
        self._root = root
        self._scan = scan
        self._limit = limit
        self._known = known
        self._pool = pool
        self._window = workers + 1
        self._builder = PackBuilder()
        self._draft = Draft()
        self._spare: list[Draft] = []
        self._large: list[Unread] = []

    def packs(self, steps: Iterable[Step]) -> Generator[Future[Pack], None, None]:
        """Packs of contents that are not known yet, as they fill up; the rest at the end. Each is
        put together in the pool, while reading goes on.

        `steps` are those of a walk, which goes on while what it found is read and compressed.
        Raises Overflow, OSError.
        """
        waiting: deque[Future[Frame]] = deque()
        for draft in self._drafts(steps):
            waiting.append(self._pool.submit(self._compress, draft))
            if len(waiting) > self._window:
                yield from self._add(waiting.popleft().result())
        while waiting:
            yield from self._add(waiting.popleft().result())
        if self._builder.frames:
            yield self._finish()

    def _drafts(self, steps: Iterable[Step]) -> Iterator[Draft]:
        """Frames to be compressed, filled by reading the files."""
        for step in steps:
            yield from self._read_new(step)
            for file in step.unread:
                self._read_small(step.fd, file)
                if self._draft.full:
                    yield self._hand_over()
        with Directories(self._root) as directories:
            for file in self._large:
                yield from self._read_large(directories, file)
        if self._draft.members:
            yield self._hand_over()

    def _hand_over(self) -> Draft:
        draft = self._draft
        self._draft = self._spare.pop() if self._spare else Draft()
        return draft

    def _compress(self, draft: Draft) -> Frame:
        """Runs in the pool; the buffer goes back for the next frame."""
        frame = draft.compress()
        draft.clear()
        self._spare.append(draft)
        return frame

    def _add(self, frame: Frame) -> Iterator[Future[Pack]]:
        self._builder.add(frame)
        if self._builder.full:
            yield self._finish()

    def _finish(self) -> Future[Pack]:
        builder, self._builder = self._builder, PackBuilder()
        return self._pool.submit(builder.finish)

    def _read_new(self, step: Step) -> Iterator[Draft]:
        """Read files that nobody has looked at, in one piece each; what is not plain takes the
        common way. This runs once a file of the whole tree at a first snapshot, and is kept flat
        for that.
        """
        directory, listing, draft = step.fd, step.listing, self._draft
        for name in step.new:
            read_at = time.time_ns()
            try:
                size, before, after = _read_once(directory, name, draft.room)
            except OSError as error:
                self.contents.append(_lost(Unread(step.directory, name, NO_SIGNATURE), error))
                continue
            signature = signature_of(before)
            if not stat.S_ISREG(signature[4]):
                self.contents.append(_changed_type(Unread(step.directory, name, signature)))
                continue
            if signature[0] > self._limit:
                listing[name] = oversized(before)
                continue
            self._count(signature[0])
            plain = size == signature[0] and not signature[4] & SET_ID
            if plain and signature == signature_of(after) and still(signature[2], read_at):
                digest = self._take(draft.room[:size]) if size else ""
                self.plain.append((listing, name, signature, digest))
                self.bytes += size
            else:
                self._read_small(directory, Unread(step.directory, name, signature))
            if draft.full:
                yield self._hand_over()
                draft = self._draft

    def _count(self, size: int) -> None:
        self._scan.bytes += size
        if self._scan.bytes > self._limit:
            raise Overflow

    def _read_small(self, directory: int, file: Unread) -> None:
        """Read a file in one piece, or put it aside as a large one."""
        walked = file.signature
        if walked[0] >= CHUNK:
            self._large.append(file)
            return
        room = self._draft.room
        try:
            fd = os.open(file.name, OPEN_FILE, dir_fd=directory)
        except OSError as error:
            self.contents.append(_lost(file, error))
            return
        try:
            size, signature, read_at, stable = _read_stable(fd, walked, room)
        except _OtherType:
            self.contents.append(_changed_type(file))
            return
        except _Large:
            self._large.append(file)
            return
        finally:
            os.close(fd)
        self.bytes += size
        hashes = (self._take(room[:size]),) if size else ()
        self.contents.append(_content(file, signature, read_at, hashes, stable=stable))

    def _read_large(self, directories: Directories, file: Unread) -> Iterator[Draft]:
        try:
            fd = os.open(file.name, OPEN_FILE, dir_fd=directories.open(file.directory))
        except OSError as error:
            self.contents.append(_lost(file, error))
            return
        try:
            for attempt in range(1, TRIES + 1):
                read_at, before = time.time_ns(), signature_of(os.fstat(fd))
                grown = before[0] - file.signature[0]
                if not stat.S_ISREG(before[4]):
                    content = _changed_type(file)
                elif grown > max(0, self._limit - self._scan.bytes):
                    content = Content(file, None, None, (), "too_large", f"{before[0]} bytes")
                else:
                    self._scan.bytes += grown
                    file = file._replace(signature=before)
                    content = yield from self._read_chunks(fd, file, read_at)
                if content.problem != "unstable" or attempt == TRIES:
                    self.contents.append(content)
                    return
        finally:
            os.close(fd)

    def _read_chunks(self, fd: int, file: Unread, read_at: int) -> Generator[Draft, None, Content]:
        before = file.signature
        hashes: list[str] = []
        read = 0
        for offset in range(0, before[0], CHUNK):
            room = self._draft.room[: min(CHUNK, before[0] - offset)]
            if _is_hole(fd, offset, len(room)):
                room[:] = bytes(len(room))
                size = len(room)
            else:
                size = os.preadv(fd, [room], offset)
                self.bytes += size
            if not size:
                break
            read += size
            hashes.append(self._take(room[:size]))
            if self._draft.full:
                yield self._hand_over()
        after = signature_of(os.fstat(fd))
        stable = after == before and read == before[0]
        return _content(file, (read, *after[1:]), read_at, tuple(hashes), stable=stable)

    def _take(self, data: memoryview) -> str:
        """Keep what was read into the draft's room if it is new; returns its hash."""
        digest = blake3(data).hexdigest()
        if digest not in self._known:
            self._known.add(digest)
            self._draft.keep(digest, len(data))
        return digest


class _OtherType(Exception):  # noqa: N818 (steers, is no error)
    """It is no regular file any more."""


class _Large(Exception):  # noqa: N818 (steers, is no error)
    """It has grown beyond what is read in one piece."""


def _read_once(
    directory: int, name: str, room: memoryview
) -> tuple[int, os.stat_result, os.stat_result]:
    """Look, read, look: bytes read and both looks. What is no small file is not read: -1 bytes.

    Raises OSError.
    """
    fd = os.open(name, OPEN_FILE, dir_fd=directory)
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode) or before.st_size >= CHUNK:
            return -1, before, before
        return os.preadv(fd, (room,), 0), before, os.fstat(fd)
    finally:
        os.close(fd)


def _read_stable(fd: int, walked: Signature, room: memoryview) -> tuple[int, Signature, int, bool]:
    """Stat, read, stat, until both agree or TRIES are spent: size, signature, time before the
    reading, whether stable.

    The walk's own stat is the first one of the first try. Raises _OtherType, _Large.
    """
    before = walked
    for attempt in range(1, TRIES + 1):
        read_at = time.time_ns()
        try:
            size = os.preadv(fd, (room,), 0)
        except OSError as error:
            if error.errno in NO_POSITIONS:
                raise _OtherType from error
            raise
        after = signature_of(os.fstat(fd))
        if after == before and size == after[0]:
            return size, after, read_at, True
        if not stat.S_ISREG(after[4]):
            raise _OtherType
        if size >= CHUNK or after[0] >= CHUNK:
            raise _Large
        if attempt < TRIES:
            before = after
    return size, (size, *after[1:]), read_at, False


def _is_hole(fd: int, offset: int, length: int) -> bool:
    """Whether nothing is stored there, so that it need not be read (security.md W5)."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA) >= offset + length
    except OSError:  # no data up to the end of the file, or the file is shorter now
        return os.fstat(fd).st_size >= offset + length


def _content(
    file: Unread, signature: Signature, read_at: int, hashes: tuple[str, ...], *, stable: bool
) -> Content:
    if not stable:
        return Content(file, None, signature, hashes, "unstable", f"changed in {TRIES} readings")
    problem: PathProblem | None = "setuid_stripped" if signature[4] & SET_ID else None
    return Content(file, settled(signature, read_at), signature, hashes, problem)


def _changed_type(file: Unread) -> Content:
    return Content(file, None, None, (), "vanished", "became another type")


def _lost(file: Unread, error: OSError) -> Content:
    """What an open that failed says of the file; trouble of our own is raised again."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return Content(file, None, None, (), "unreadable", error.strerror or "")
    if error.errno == errno.EAGAIN:  # somebody holds a lease on it: no time tells when that ends
        unknown = file._replace(signature=NO_SIGNATURE)
        return Content(unknown, None, None, (), "unreadable", "leased by a process")
    if error.errno in GONE:
        return Content(file, None, None, (), "vanished", error.strerror or "")
    raise error
