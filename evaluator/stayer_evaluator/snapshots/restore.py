"""Brings a tree back: contained in one directory, no link ever followed, every hash checked.

The process may be unprivileged; as root it gives everything to an owner. Nothing else may work in
the directory meanwhile. Run again after any crash, it starts from an empty directory.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stayer_evaluator.snapshots.directories import OPEN_DIRECTORY
from stayer_evaluator.snapshots.manifest import Node, Piece, Tree
from stayer_evaluator.snapshots.pack import CHUNK
from stayer_evaluator.snapshots.walk import MAX_DEPTH
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.documents import CorruptObject

CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ZEROS = bytes(CHUNK)

Children = dict[bytes, list[tuple[bytes, Node]]]


class PieceSource(Protocol):
    """Where contents come from."""

    def read(self, piece: Piece) -> bytes:
        """The plain bytes, verified."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom restored paths belong to; only root can give them away."""

    uid: int
    gid: int


def restore(
    tree: Tree,
    source: PieceSource,
    root: Path,
    owner: Owner | None = None,
    *,
    add: bool = False,
) -> None:
    """Make the directory `root` hold exactly `tree`. Its own mode is left alone.

    With `add`, what is there stays, and no top-level name of the tree may be among it.
    Raises CorruptObject for a tree that no walk gives or content that does not verify, OSError.
    """
    children = _by_parent(tree)
    if not add:
        wipe(root)
    top = os.open(root, OPEN_DIRECTORY)
    try:
        if owner is not None:
            os.fchown(top, owner.uid, owner.gid)
        _Restore(children, source, owner).run(top)
    finally:
        os.close(top)


def _by_parent(tree: Tree) -> Children:
    """The tree by directory. Raises CorruptObject when a parent is missing or no directory."""
    children: Children = {}
    for path in sorted(tree):
        parent, _, name = path.rpartition(b"/")
        above = tree.get(parent)
        if parent and (above is None or above.type != "dir"):
            raise CorruptObject(f"{path!r}: its parent is not a directory of the tree")
        if path.count(b"/") >= MAX_DEPTH:
            raise CorruptObject(f"{path!r} is deeper than {MAX_DEPTH} levels")
        children.setdefault(parent, []).append((name, tree[path]))
    return children


@dataclass(slots=True)
class _Open:
    """A directory that is being filled."""

    fd: int
    path: bytes
    mode: int
    folders: list[tuple[bytes, int]]


class _Restore:
    def __init__(self, children: Children, source: PieceSource, owner: Owner | None) -> None:
        self.children = children
        self.source = source
        self.owner = owner

    def run(self, top: int) -> None:
        stack = [_Open(os.dup(top), b"", -1, self._fill(top, b""))]
        try:
            while stack:
                here = stack[-1]
                if not here.folders:
                    self._finish(stack.pop())
                    continue
                name, mode = here.folders.pop()
                path = here.path + b"/" + name if here.path else name
                os.mkdir(name, 0o700, dir_fd=here.fd)
                fd = os.open(name, OPEN_DIRECTORY, dir_fd=here.fd)
                stack.append(_Open(fd, path, mode, []))
                stack[-1].folders = self._fill(fd, path)
        finally:
            for left in stack:
                os.close(left.fd)

    def _finish(self, done: _Open) -> None:
        """Owner and mode come last: before, the directory must be writable."""
        try:
            if done.path:
                self._give(done.fd)
                os.fchmod(done.fd, done.mode)
        finally:
            os.close(done.fd)

    def _fill(self, fd: int, path: bytes) -> list[tuple[bytes, int]]:
        """Write files and links of one directory; returns its subdirectories with their modes."""
        folders = []
        for name, node in self.children.get(path, []):
            if node.type == "dir":
                folders.append((name, node.mode))
            elif node.type == "link":
                self._link(fd, name, node)
            else:
                self._file(fd, name, node)
        return folders

    def _link(self, directory: int, name: bytes, node: Node) -> None:
        os.symlink(node.target or b"", name, dir_fd=directory)
        if self.owner is not None:
            os.chown(name, self.owner.uid, self.owner.gid, dir_fd=directory, follow_symlinks=False)

    def _file(self, directory: int, name: bytes, node: Node) -> None:
        fd = os.open(name, CREATE_FILE, 0o600, dir_fd=directory)
        try:
            offset = 0
            for piece in node.pieces:
                _write(fd, self.source.read(piece), offset)
                offset += piece.size
            if node.pieces and node.pieces[-1].size == CHUNK:
                os.ftruncate(fd, offset)  # the last chunk may have been a hole
            self._give(fd)
            os.fchmod(fd, node.mode)
        finally:
            os.close(fd)

    def _give(self, fd: int) -> None:
        if self.owner is not None:
            os.fchown(fd, self.owner.uid, self.owner.gid)


def _write(fd: int, data: bytes, offset: int) -> None:
    """Write at `offset`; a chunk of zeros stays a hole, so that sparse files stay small."""
    if data == ZEROS:
        return
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written
