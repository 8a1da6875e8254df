"""Content hashes: what a build product is cached by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def hash_content(facts: Mapping[str, object], sources: Iterable[Path] = ()) -> str:
    """A short hash of some facts and of files' names and bytes; order does not matter.

    A folder stands for every file below it. Names are relative to the source that was given,
    so that the same sources have the same hash wherever they lie.
    """
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    entries: list[tuple[str, bytes]] = []
    for source in sources:
        if source.is_dir():
            files = (path for path in source.rglob("*") if path.is_file())
            entries += [(str(path.relative_to(source)), path.read_bytes()) for path in files]
        else:
            entries.append((source.name, source.read_bytes()))
    for name, content in sorted(entries):
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
