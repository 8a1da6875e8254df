"""Packs: new contents of a snapshot, each in a zstd frame of its own, one after the other."""

from dataclasses import dataclass, field

import blake3
import zstandard

from stayer_evaluator.snapshots.manifest import Piece
from stayer_evaluator.storage.documents import CorruptObject, decompress

CHUNK = 1024 * 1024
"""Files of this size and above are stored in chunks of it (docs/decisions)."""
PACK_LIMIT = 64 * 1024**2
"""Compressed bytes: more new content than this makes more than one pack, so that the sidecar's
memory holds one."""
LEVEL = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """One compressed content."""

    hash: str
    size: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Pack:
    """A finished pack. `digest` is the blake3 of its bytes and the last part of its key."""

    digest: str
    data: bytes
    members: tuple[tuple[str, int, int, int], ...]
    """Hash, offset, compressed length, plain size."""

    def pieces(self, key: str) -> dict[str, Piece]:
        """The members by hash, as they lie under `key`."""
        return {
            digest: Piece(digest, key, offset, length, size)
            for digest, offset, length, size in self.members
        }


@dataclass(slots=True)
class PackBuilder:
    """Collects frames until they are worth a pack."""

    frames: list[Frame] = field(default_factory=list)
    hashes: set[str] = field(default_factory=set)
    length: int = 0

    @property
    def full(self) -> bool:
        return self.length >= PACK_LIMIT

    def add(self, frame: Frame) -> None:
        """Take a frame in, unless one with equal content is there."""
        if frame.hash not in self.hashes:
            self.hashes.add(frame.hash)
            self.frames.append(frame)
            self.length += len(frame.data)

    def finish(self) -> Pack:
        """The pack; the builder is empty afterwards."""
        members = []
        offset = 0
        for frame in self.frames:
            members.append((frame.hash, offset, len(frame.data), frame.size))
            offset += len(frame.data)
        data = b"".join([frame.data for frame in self.frames])
        self.frames, self.hashes, self.length = [], set(), 0
        return Pack(blake3.blake3(data).hexdigest(), data, tuple(members))


def content_hash(data: bytes | memoryview) -> str:
    """The name of a content: blake3, 64 hex digits."""
    return blake3.blake3(data).hexdigest()


def make_frame(digest: str, data: bytes, compressor: zstandard.ZstdCompressor) -> Frame:
    """Compress one content of at most CHUNK bytes."""
    return Frame(digest, len(data), compressor.compress(data))


def unpack(frame: bytes, piece: Piece) -> bytes:
    """The plain bytes of a piece, verified. Raises CorruptObject (security.md W13)."""
    if piece.size > CHUNK:
        raise CorruptObject(f"{piece.hash}: {piece.size} bytes in one frame")
    plain = decompress(frame, limit=piece.size)
    if len(plain) != piece.size or content_hash(plain) != piece.hash:
        raise CorruptObject(f"{piece.pack}: bytes at {piece.offset} are not {piece.hash}")
    return plain
