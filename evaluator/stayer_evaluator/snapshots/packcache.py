"""Packs on local disk: downloaded once, verified, read piece by piece."""

import os
from collections import OrderedDict
from pathlib import Path

import blake3

from stayer_evaluator.snapshots.manifest import Piece, Tree
from stayer_evaluator.snapshots.pack import cut, unpack
from stayer_evaluator.storage.documents import CorruptObject
from stayer_evaluator.storage.store import ObjectStore

FRAMES_KEPT = 8
"""Decompressed frames held in memory, at most 2 MiB each."""


class PackCache:
    """A directory of packs, private to its process's container."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, int] = {}
        self._frames: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def close(self) -> None:
        """Close the packs that were read."""
        self._frames.clear()
        while self._open:
            os.close(self._open.popitem()[1])

    async def fetch(self, store: ObjectStore, tree: Tree) -> int:
        """Bring every pack that the tree needs; returns how many were downloaded.

        A pack is there under its name only when it is whole: killed at any point, a second call
        finishes the work. Raises CorruptObject, ObjectMissing, StoreError.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        missing = sorted(key for key in packs_of(tree) if not self._path(key).exists())
        for key in missing:
            await self._download(store, key)
        return len(missing)

    def discard_others(self, tree: Tree) -> None:
        """Delete the packs that the tree does not need."""
        keep = {self._path(key).name for key in packs_of(tree)}
        self.close()
        for path in self.directory.iterdir():
            if path.name not in keep:
                path.unlink()

    def read(self, piece: Piece) -> bytes:
        """The plain bytes of a piece, verified. Raises CorruptObject, FileNotFoundError."""
        return cut(self._frame(piece), piece)

    def _frame(self, piece: Piece) -> bytes:
        """The plain bytes of a piece's frame; the last few are kept, as neighbours share one."""
        place = (piece.pack, piece.offset)
        plain = self._frames.pop(place, None)
        if plain is None:
            fd = self._open.get(piece.pack)
            if fd is None:
                fd = self._open[piece.pack] = os.open(self._path(piece.pack), os.O_RDONLY)
            plain = unpack(os.pread(fd, piece.length, piece.offset))
            if len(self._frames) >= FRAMES_KEPT:
                self._frames.popitem(last=False)
        self._frames[place] = plain
        return plain

    async def _download(self, store: ObjectStore, key: str) -> None:
        path = self._path(key)
        partial = path.with_suffix(".partial")
        hasher = blake3.blake3()
        with partial.open("wb") as file:
            async for data in store.stream(key):
                hasher.update(data)
                file.write(data)
        if hasher.hexdigest() != path.name:
            raise CorruptObject(f"{key}: its bytes do not have the hash in its name")
        partial.replace(path)

    def _path(self, key: str) -> Path:
        digest = key.rpartition("/")[2]
        if len(digest) != 64 or not all(digit in "0123456789abcdef" for digit in digest):
            raise CorruptObject(f"{key!r} is not the key of a pack")
        return self.directory / digest


def packs_of(tree: Tree) -> set[str]:
    """Keys of the packs that hold the tree's contents."""
    return {piece.pack for node in tree.values() for piece in node.pieces}
