"""File records of trees that were walked here, made without checking them.

A first snapshot makes 12,000: validating costs three times as much as making them. What is read
from a store goes through pydantic.
"""

from typing import Any, Literal

from stayer_evaluator.records.queue import Chunk, FileRecord


def _setter(kind: type, name: str) -> Any:
    """Sets a slot of a frozen dataclass that is being made."""
    return kind.__dict__[name].__set__


_new = object.__new__
_path = _setter(FileRecord, "path")
_type = _setter(FileRecord, "type")
_mode = _setter(FileRecord, "mode")
_size = _setter(FileRecord, "size")
_target = _setter(FileRecord, "target")
_chunks = _setter(FileRecord, "chunks")
_hash = _setter(Chunk, "hash")
_pack = _setter(Chunk, "pack")
_offset = _setter(Chunk, "offset")
_length = _setter(Chunk, "length")
_at = _setter(Chunk, "at")
_plain = _setter(Chunk, "size")


def file_record(
    path: str,
    kind: Literal["file", "dir", "link"],
    mode: int,
    size: int,
    target: str | None,
    chunks: tuple[Chunk, ...],
) -> FileRecord:
    """The FileRecord of these fields."""
    record = _new(FileRecord)
    _path(record, path)
    _type(record, kind)
    _mode(record, mode)
    _size(record, size)
    _target(record, target)
    _chunks(record, chunks)
    return record


def chunk(digest: str, pack: int, offset: int, length: int, at: int, size: int) -> Chunk:
    """The Chunk of these fields."""
    made = _new(Chunk)
    _hash(made, digest)
    _pack(made, pack)
    _offset(made, offset)
    _length(made, length)
    _at(made, at)
    _plain(made, size)
    return made
