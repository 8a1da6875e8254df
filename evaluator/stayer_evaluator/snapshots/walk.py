"""One look at a tree: what is there, what must be read again. Nothing is opened but directories.

Iterative and by directory descriptors, so that neither depth nor a swapped link leads anywhere
else (security.md W1, W7). The inner loop is kept flat: at 12,000 files it decides how long an
unchanged snapshot takes.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stayer_evaluator.records.queue import PathProblem
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.directories import OPEN_DIRECTORY, Directories
from stayer_evaluator.snapshots.excludes import Filter
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tree may hold; beyond it paths are left out and reported."""

    files: int = 200_000
    bytes: int = 8 * 1024**3
    depth: int = MAX_DEPTH


class Unread(NamedTuple):
    """A regular file that may have changed."""

    directory: str
    name: str
    signature: Signature


class Step(NamedTuple):
    """What must be read in one directory, through its descriptor."""

    fd: int
    directory: str
    listing: Listing
    """Of the scan: where the placeholders of these files are."""
    new: list[str]
    """Names of regular files that nobody has looked at yet, to spare a look at each: whoever reads
    them adds their sizes to the scan's, and stops beyond the limit."""
    unread: list[Unread]


NEW = Seen(None, None, None)
_Place = tuple[int, str, list[str]]
"""An open directory: descriptor, path, subdirectories that are still to be entered."""

Stamp = tuple[int, int, int]
"""Inode, mtime, ctime of a directory."""


@dataclass(slots=True)
class Scan:
    """What one walk saw. Files that must be read stand in `index` with a signature of None."""

    started_ns: int
    index: Index = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    """Of every directory, taken just before it was listed."""
    unread: int = 0
    """Files that must be read."""
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

    looks_at_new = False
    """Whether also a new regular file is looked at before it is read."""

    def __init__(self, index: Index, excludes: Filter, limits: Limits) -> None:
        self.old = index
        self.excludes = excludes
        self.limits = limits
        self.scan = Scan(started_ns=time.time_ns())

    def steps(self, root: int) -> Iterator[Step]:
        """What must be read in each directory that holds something to read.

        Its descriptor is valid until the next step. Raises Overflow; OSError when the root itself
        cannot be listed.
        """
        stack: list[_Place] = []
        try:
            step: Step | None = self._enter(stack, root, ".", "")
            while stack:
                fd, directory, pending = stack[-1]
                if step is not None:
                    if step.new or step.unread:
                        yield step
                    step = None
                elif pending:
                    step = self._descend(stack, fd, directory, pending.pop())
                else:
                    os.close(stack.pop()[0])
        finally:
            for fd, _, _ in stack:
                os.close(fd)
        self.scan.changed = self.scan.changed or len(self.scan.index) != len(self.old)

    def _enter(self, stack: list[_Place], parent: int, name: str, directory: str) -> Step:
        """Open and list a directory, which is the last of the stack then."""
        fd = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        folders: list[str] = []
        stack.append((fd, directory, folders))
        self.scan.stamps[directory] = stamp_of(os.fstat(fd))
        return self._list(fd, directory, folders)

    def _descend(self, stack: list[_Place], fd: int, directory: str, name: str) -> Step | None:
        path = directory + name
        if len(stack) >= self.limits.depth:
            detail = f"deeper than {self.limits.depth} levels"
            self.scan.problems.append((path, "too_deep", detail))
            return None
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
        return None

    def _list(self, fd: int, directory: str, folders: list[str]) -> Step:
        """List one directory; adds the names of its subdirectories to `folders`."""
        known: Listing = self.old.get(directory, {})
        fresh: Listing = {}
        new: list[str] = []
        unread: list[Unread] = []
        size = 0
        leaves_out = self.excludes.leaves_out
        room = self.limits.files - self.scan.entries
        with os.scandir(fd) as found:
            for entry in self._arrange(directory, found):
                name = entry.name
                if name in fresh:  # listed twice, as it was made anew meanwhile
                    continue
                seen = known.get(name)
                if seen is None:
                    if len(fresh) >= room:  # bounds memory while one huge directory is listed
                        self._overflow()
                    if leaves_out(directory, name):
                        continue
                    if not self.looks_at_new and entry.is_file(follow_symlinks=False):
                        fresh[name] = NEW
                        new.append(name)
                        continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self._without_a_look(name, seen, fresh, error)
                    continue
                if status.st_mode & 0o170000 == 0o040000:
                    self._folder(name, status.st_mode, seen, fresh, folders)
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
        self.scan.unread += len(new)
        return Step(fd, directory, fresh, new, unread)

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

    def _without_a_look(self, name: str, seen: Seen | None, fresh: Listing, error: OSError) -> None:
        """What cannot be looked at: it is gone, or its directory may be listed but not searched."""
        if error.errno == errno.ENOENT:
            return
        if error.errno != errno.EACCES:
            raise error
        fresh[name] = Seen(None, None, None, "unreadable", error.strerror or "")
        self.scan.changed = self.scan.changed or seen is None or seen.problem != "unreadable"

    def _folder(
        self, name: str, mode: int, seen: Seen | None, fresh: Listing, folders: list[str]
    ) -> None:
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
        signature = signature_of(status)
        if not stat.S_ISREG(status.st_mode):
            now = _special(fd, directory + name, name, signature, self.scan.started_ns)
        elif status.st_size > self.limits.bytes:
            now = oversized(status)
        else:
            fresh[name] = Seen(None, signature, seen.node if seen else None)
            unread.append(Unread(directory, name, signature))
            return status.st_size
        fresh[name] = now
        if seen is None or (seen.node, seen.problem) != (now.node, now.problem):
            self.scan.changed = True
        return 0

    def _overflow(self) -> None:
        raise Overflow


def stamp_of(status: os.stat_result) -> Stamp:
    """What of a directory changes when a name in it does."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def moved(root: int, scan: Scan) -> bool:
    """Whether a name may have come or gone since the walk listed its directory.

    A file that is moved between two directories while they are listed could be in neither listing.
    """
    for directory, stamp in scan.stamps.items():
        if not still(stamp[2], scan.started_ns):
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
    return signature if still(signature[2], read_at_ns) else None


def still(ctime_ns: int, at_ns: int) -> bool:
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


def oversized(status: os.stat_result) -> Seen:
    """A file that alone is beyond the limit of bytes."""
    sparse = status.st_blocks * 512 < status.st_size // 2
    problem: PathProblem = "sparse_capped" if sparse else "too_large"
    return Seen(None, signature_of(status), None, problem, f"{status.st_size} bytes")
