"""Transcripts of rounds, compressed, under `transcripts/`."""

import zstandard

from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.store import ObjectStore


async def upload_transcript(
    store: ObjectStore, keys: TrialKeys, name: str, text: bytes
) -> str | None:
    """Store a round's transcript; its key, or None when there is nothing to store.

    Raises StoreError.
    """
    if not text:
        return None
    key = keys.transcript(f"{name}.log.zst")
    await store.create(key, zstandard.ZstdCompressor(level=3).compress(text))
    return key
