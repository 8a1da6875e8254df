"""Packs: the new contents of a snapshot in zstd frames, one after the other.

Small files of one neighbourhood share a frame, as they compress better and faster together; a
chunk of a large file has a frame of its own.
"""

from dataclasses import dataclass, field

import blake3
import zstandard

from stayer_evaluator.snapshots.manifest import Piece
from stayer_evaluator.storage.documents import CorruptObject, decompress

CHUNK = 1024 * 1024
"""Files of this size and above are stored in chunks of it (docs/decisions)."""
FRAME_LIMIT = 2 * CHUNK
"""Plain bytes of a frame: it is closed at CHUNK, its last file may reach beyond."""
PACK_LIMIT = 16 * 1024**2
"""Compressed bytes: more new content than this makes more than one pack, so that the sidecar's
memory holds one, and its upload begins while the rest is read."""
LEVEL = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """Contents that were compressed together."""

    members: tuple[tuple[str, int, int], ...]
    """Hash, offset in the plain bytes, size."""
    data: bytes


class Draft:
    """A frame that is being filled: a buffer that files are read into, with its compressor."""

    def __init__(self) -> None:
        self.members: list[tuple[str, int, int]] = []
        self.full = False
        """Time to compress it: after CHUNK bytes, while as many are still free."""
        self._used = 0
        self._buffer = memoryview(bytearray(FRAME_LIMIT))
        self.room = self._buffer
        """The free rest of the buffer, at least CHUNK bytes unless the draft is full."""
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)

    def keep(self, digest: str, size: int) -> None:
        """The first `size` bytes of the room are a content of this frame."""
        self.members.append((digest, self._used, size))
        self._used += size
        self.room = self._buffer[self._used :]
        self.full = self._used >= CHUNK

    def compress(self) -> Frame:
        """The frame of what was kept."""
        data = self._compressor.compress(self._buffer[: self._used])
        return Frame(tuple(self.members), data)

    def clear(self) -> None:
        """Begin anew."""
        self.members = []
        self.full = False
        self._used = 0
        self.room = self._buffer


@dataclass(frozen=True, slots=True)
class Pack:
    """A finished pack. `digest` is the blake3 of its bytes and the last part of its key."""

    digest: str
    data: bytes
    index: tuple[tuple[int, int, tuple[tuple[str, int, int], ...]], ...]
    """Of each frame: offset in the pack, compressed length, members as in Frame."""

    def pieces(self, key: str) -> dict[str, Piece]:
        """The contents by their hashes, as they lie under `key`."""
        found = {}
        for offset, length, members in self.index:
            for digest, at, size in members:
                found[digest] = tuple.__new__(Piece, (digest, key, offset, length, at, size))
        return found


@dataclass(slots=True)
class PackBuilder:
    """Collects frames until they are worth a pack."""

    frames: list[Frame] = field(default_factory=list)
    length: int = 0

    @property
    def full(self) -> bool:
        return self.length >= PACK_LIMIT

    def add(self, frame: Frame) -> None:
        """Take a compressed frame in."""
        self.frames.append(frame)
        self.length += len(frame.data)

    def finish(self) -> Pack:
        """The pack."""
        index = []
        offset = 0
        for frame in self.frames:
            index.append((offset, len(frame.data), frame.members))
            offset += len(frame.data)
        data = b"".join([frame.data for frame in self.frames])
        return Pack(content_hash(data), data, tuple(index))


def content_hash(data: bytes | memoryview) -> str:
    """The name of a content: blake3, 64 hex digits."""
    return blake3.blake3(data).hexdigest()


def unpack(frame: bytes) -> bytes:
    """The plain bytes of a frame. Raises CorruptObject (security.md W13)."""
    return decompress(frame, limit=FRAME_LIMIT)


def cut(plain: bytes, piece: Piece) -> bytes:
    """A piece of a frame's plain bytes, verified. Raises CorruptObject."""
    content = plain[piece.at : piece.at + piece.size]
    if len(content) != piece.size or content_hash(content) != piece.hash:
        raise CorruptObject(f"{piece.pack}: bytes at {piece.offset} are not {piece.hash}")
    return content
