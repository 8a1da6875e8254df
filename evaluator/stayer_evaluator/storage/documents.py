"""Compressed documents: canonical JSON in one zstd frame that states its content size."""

import zstandard

from stayer_evaluator.records.base import Record
from stayer_evaluator.storage.pause import collector_paused
from stayer_evaluator.storage.store import StoreError

MAX_DOCUMENT = 256 * 1024**2
LEVEL = 1
"""Manifests, the only large ones, come out a tenth smaller than at 3, in half the time."""


class CorruptObject(StoreError):  # noqa: N818 (reads as what happened)
    """An object's bytes are not what its reader must find: truncated, altered or a bomb."""

    retryable = False


def compress(record: Record) -> bytes:
    """The stored bytes of a record; equal records give equal bytes."""
    with collector_paused():
        return zstandard.ZstdCompressor(level=LEVEL).compress(record.to_bytes())


def decompress(data: bytes, limit: int = MAX_DOCUMENT) -> bytes:
    """The plain bytes of one frame, at most `limit`. Raises CorruptObject.

    The size is read from the frame's header before anything is allocated: a frame that hides or
    overstates its size is refused, one that understates it fails while decompressing.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= limit:
            raise CorruptObject(f"frame states {size} bytes, at most {limit} are accepted")
        plain = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise CorruptObject(str(error)) from error
    if len(plain) != size:
        raise CorruptObject(f"frame states {size} bytes and holds {len(plain)}")
    return plain
