"""One look at a tree: what is there, what must be read again. Nothing is opened but directories.

Iterative and by directory descriptors, so that neither depth nor a swapped link leads anywhere
else (security.md W1, W7). The inner loop is kept flat: at 12,000 files it decides how long an
unchanged snapshot takes.
"""

import errno
import heapq
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stayer_evaluator.records.queue import PathProblem
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.directories import OPEN_DIRECTORY, Directories
from stayer_evaluator.snapshots.excludes import ALWAYS_KEPT, Filter
from stayer_evaluator.snapshots.index import (
    FUTURE_NS,
    RACY_WINDOW_NS,
    Index,
    Listing,
    Seen,
    Signature,
)
from stayer_evaluator.snapshots.manifest import Node

MAX_DEPTH = 256
"""Levels; one descriptor each is open at the deepest place."""
KEPT_ENTRIES = 10_000
KEPT_BYTES = 64 * 1024**2
"""What ALWAYS_KEPT may hold besides the limits: a full workspace must not crowd it out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tree may hold; beyond it paths are left out and reported."""

    files: int = 200_000
    bytes: int = 8 * 1024**3
    depth: int = MAX_DEPTH


class Unread(NamedTuple):
    """A regular file whose content must be read."""

    directory: str
    name: str
    signature: Signature


_Place = tuple[int, str, list[str]]
"""An open directory: descriptor, path, subdirectories that are still to be entered."""

Stamp = tuple[int, int, int]
"""Inode, mtime, ctime of a directory."""


@dataclass(slots=True)
class Scan:
    """What one walk saw. Files that had to be read stand in `index` with a signature of None."""

    started_ns: int
    index: Index = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    """Of every directory, taken just before it was listed."""
    unread: int = 0
    """Files that had to be read."""
    changed: bool = False
    """A path other than those files is new, gone or different."""
    problems: list[tuple[str, PathProblem, str]] = field(default_factory=list)
    """Of whole directories: path, problem, detail."""
    entries: int = 0
    bytes: int = 0


class Overflow(Exception):  # noqa: N818 (steers, is no error)
    """The tree holds more than the limits allow: look at it again with an OrderedWalk."""


class Walk:
    """A look at the tree under a directory descriptor, directory by directory.

    Iterate `steps`, then read `scan`. What the steps ask for can be read at once, through the
    directory's descriptor, while it is still open.
    """

    def __init__(self, index: Index, excludes: Filter, limits: Limits) -> None:
        self.old = index
        self.excludes = excludes
        self.limits = limits
        self.scan = Scan(started_ns=time.time_ns())

    def steps(self, root: int) -> Iterator[tuple[int, list[Unread]]]:
        """The unread files of each directory that has some, with its descriptor.

        The descriptor is valid until the next step. Raises Overflow; OSError when the root itself
        cannot be listed.
        """
        stack: list[_Place] = []
        try:
            unread = self._enter(stack, root, ".", "")
            while stack:
                fd, directory, pending = stack[-1]
                if unread:
                    yield fd, unread
                    unread = []
                elif pending:
                    unread = self._descend(stack, fd, directory, pending.pop())
                else:
                    os.close(stack.pop()[0])
        finally:
            for fd, _, _ in stack:
                os.close(fd)
        self.scan.changed = self.scan.changed or len(self.scan.index) != len(self.old)

    def _enter(self, stack: list[_Place], parent: int, name: str, directory: str) -> list[Unread]:
        """Open and list a directory, which is the last of the stack then."""
        fd = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        folders: list[str] = []
        stack.append((fd, directory, folders))
        self.scan.stamps[directory] = stamp_of(os.fstat(fd))
        return self._list(fd, directory, folders)

    def _descend(self, stack: list[_Place], fd: int, directory: str, name: str) -> list[Unread]:
        path = directory + name
        if len(stack) >= self.limits.depth:
            detail = f"deeper than {self.limits.depth} levels"
            self.scan.problems.append((path, "too_deep", detail))
            return []
        try:
            return self._enter(stack, fd, name, path + "/")
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                self.scan.problems.append((path, "unreadable", error.strerror or ""))
            elif error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                self.scan.index[directory].pop(name, None)
                self.scan.changed = True
                self.scan.problems.append((path, "vanished", ""))
            else:
                raise
        return []

    def _list(self, fd: int, directory: str, folders: list[str]) -> list[Unread]:
        """List one directory; adds the names of its subdirectories to `folders`."""
        known: Listing = self.old.get(directory, {})
        fresh: Listing = {}
        unread: list[Unread] = []
        size = 0
        with os.scandir(fd) as found:
            for entry in self._arrange(directory, found):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                name = entry.name
                seen = known.get(name)
                if status.st_mode & 0o170000 == 0o040000:
                    self._folder(directory, name, status.st_mode, seen, fresh, folders)
                elif seen is not None and seen.signature == (
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                    status.st_ino,
                    status.st_mode,
                ):
                    fresh[name] = seen
                    size += status.st_size
                else:
                    size += self._other(fd, directory, name, status, seen, fresh, unread)
        self._close(directory, known, fresh, folders, unread, size)
        return unread

    def _arrange(
        self,
        directory: str,  # noqa: ARG002 (the ordered walk needs it)
        found: Iterable[os.DirEntry[str]],
    ) -> Iterable[os.DirEntry[str]]:
        return found

    def _close(
        self,
        directory: str,
        known: Listing,
        fresh: Listing,
        folders: list[str],  # noqa: ARG002 (the ordered walk needs it)
        unread: list[Unread],
        size: int,
    ) -> None:
        """Take a finished listing over into the scan."""
        scan = self.scan
        scan.index[directory] = fresh
        scan.unread += len(unread)
        scan.entries += len(fresh)
        scan.bytes += size
        scan.changed = scan.changed or len(fresh) != len(known)
        if scan.entries > self.limits.files or scan.bytes > self.limits.bytes:
            self._overflow()

    def _folder(
        self,
        directory: str,
        name: str,
        mode: int,
        seen: Seen | None,
        fresh: Listing,
        folders: list[str],
    ) -> None:
        if seen is None:
            self._check_room(fresh)
            if self.excludes.leaves_out(directory, name):
                return
        folders.append(name)
        signature = (0, 0, 0, 0, mode)  # of a directory only the mode is its own
        if seen is None or seen.signature != signature:
            seen = Seen(signature, signature, Node("dir", mode & 0o777))
            self.scan.changed = True
        fresh[name] = seen

    def _other(
        self,
        fd: int,
        directory: str,
        name: str,
        status: os.stat_result,
        seen: Seen | None,
        fresh: Listing,
        unread: list[Unread],
    ) -> int:
        """Anything but a directory that is new or looks different; returns the bytes it adds."""
        if seen is None:
            self._check_room(fresh)
            if self.excludes.leaves_out(directory, name):
                return 0
        signature = signature_of(status)
        if not stat.S_ISREG(status.st_mode):
            now = _special(fd, directory + name, name, signature, self.scan.started_ns)
        elif status.st_size > self.limits.bytes:
            now = _oversized(status, signature)
        else:
            fresh[name] = Seen(None, signature, seen.node if seen else None)
            unread.append(Unread(directory, name, signature))
            return status.st_size
        fresh[name] = now
        if seen is None or (seen.node, seen.problem) != (now.node, now.problem):
            self.scan.changed = True
        return 0

    def _check_room(self, fresh: Listing) -> None:
        """Bounds memory while one huge directory is listed."""
        if self.scan.entries + len(fresh) >= self.limits.files:
            self._overflow()

    def _overflow(self) -> None:
        raise Overflow


@dataclass(slots=True)
class _Budget:
    entries: int
    bytes: int


class OrderedWalk(Walk):
    """Lists by name and leaves out what is beyond the limits."""

    def __init__(self, index: Index, excludes: Filter, limits: Limits) -> None:
        super().__init__(index, excludes, limits)
        self.rest = _Budget(limits.files, limits.bytes)
        self.kept = _Budget(KEPT_ENTRIES, KEPT_BYTES)

    def _overflow(self) -> None:
        """Expected here: `_close` deals with it."""

    def _arrange(
        self, directory: str, found: Iterable[os.DirEntry[str]]
    ) -> Iterable[os.DirEntry[str]]:
        def order(entry: os.DirEntry[str]) -> tuple[bool, bytes]:
            return bool(directory) or entry.name not in ALWAYS_KEPT, os.fsencode(entry.name)

        return heapq.nsmallest(self.limits.files + 1, found, key=order)

    def _close(
        self,
        directory: str,
        known: Listing,
        fresh: Listing,
        folders: list[str],
        unread: list[Unread],
        size: int,
    ) -> None:
        budget = self.kept if directory.partition("/")[0] in ALWAYS_KEPT else self.rest
        dropped = 0
        for name, seen in list(fresh.items()):
            plain = 0 if seen.soft is None else seen.soft[0]
            if budget.entries <= 0:
                del fresh[name]
                dropped += 1
                continue
            budget.entries -= 1
            if plain > budget.bytes and seen.problem is None:
                fresh[name] = Seen(None, None, None, "too_large", "the tree is over its limit")
                size -= plain
            elif seen.problem is None:
                budget.bytes -= plain
        if dropped:
            detail = f"{dropped} or more left out"
            self.scan.problems.append((directory or ".", "too_many_files", detail))
        folders[:] = sorted((name for name in folders if name in fresh), reverse=True)
        if not directory:  # popped from the end: the kept ones first
            folders.sort(key=lambda name: name in ALWAYS_KEPT)
        unread[:] = [u for u in unread if u.name in fresh and fresh[u.name].problem is None]
        super()._close(directory, known, fresh, folders, unread, size)


def stamp_of(status: os.stat_result) -> Stamp:
    """What of a directory changes when a name in it does."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def moved(root: int, scan: Scan) -> bool:
    """Whether a name may have come or gone since the walk listed its directory.

    A file that is moved between two directories while they are listed could be in neither listing.
    """
    for directory, stamp in scan.stamps.items():
        if not _still(stamp[2], scan.started_ns):
            return True
        try:
            if _stamp_now(root, directory) != stamp:
                return True
        except OSError:
            return True
    return False


def _stamp_now(root: int, directory: str) -> Stamp:
    # By its path, as nothing is opened: whatever a link on the way leads to, its inode tells.
    try:
        return stamp_of(os.stat(directory or ".", dir_fd=root, follow_symlinks=False))
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    with Directories(root) as directories:
        return stamp_of(os.fstat(directories.open(directory)))


def signature_of(status: os.stat_result) -> Signature:
    """What is compared to tell whether a file may have changed."""
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_mode,
    )


def settled(signature: Signature, read_at_ns: int) -> Signature | None:
    """The signature if it may be trusted, None when the file changed around its reading."""
    return signature if _still(signature[2], read_at_ns) else None


def _still(ctime_ns: int, at_ns: int) -> bool:
    """Whether a change after `at_ns` must show as another ctime."""
    return not -FUTURE_NS < at_ns - ctime_ns < RACY_WINDOW_NS


def _special(fd: int, path: str, name: str, signature: Signature, now_ns: int) -> Seen:
    """A link, or something that cannot be stored."""
    trusted = settled(signature, now_ns)
    if not stat.S_ISLNK(signature[4]):
        kind = stat.filemode(signature[4])[0]
        detail = {"p": "fifo", "s": "socket", "c": "device", "b": "device"}.get(kind, kind)
        return Seen(trusted, signature, None, "special_file", detail)
    try:
        target = os.fsencode(os.readlink(name, dir_fd=fd))
    except OSError:
        return Seen(None, None, None, "vanished")
    node = Node("link", 0o777, target=target)
    if names.escapes(os.fsencode(path), target):
        return Seen(trusted, signature, node, "escaping_link")
    return Seen(trusted, signature, node)


def _oversized(status: os.stat_result, signature: Signature) -> Seen:
    sparse = status.st_blocks * 512 < status.st_size // 2
    detail = f"{status.st_size} bytes"
    return Seen(None, signature, None, "sparse_capped" if sparse else "too_large", detail)
