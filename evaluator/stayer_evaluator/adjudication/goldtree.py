"""The gold tree as snapshots see a tree, its contents kept on local disk and nowhere else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from stayer_evaluator.snapshots.base import write_base
from stayer_evaluator.snapshots.excludes import Excludes
from stayer_evaluator.snapshots.manifest import Tree
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.store import ObjectMissing


class DiskObjects:
    """An object store in one folder: an object's file is the last part of its key."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    async def create(self, key: str, data: bytes) -> bool:
        await asyncio.to_thread(self._path(key).write_bytes, data)
        return True

    async def get(self, key: str) -> bytes:
        try:
            return await asyncio.to_thread(self._path(key).read_bytes)
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    async def get_range(self, key: str, offset: int, length: int) -> bytes:
        return (await self.get(key))[offset : offset + length]

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        yield await self.get(key)

    def _path(self, key: str) -> Path:
        return self.directory / key.rpartition("/")[2]


async def gold_tree(workspace: Path, packs: Path) -> Tree:
    """The tree in `workspace`; its contents lie in `packs`, where a PackCache finds them.

    Taken by the same walk and with the same excludes as every snapshot, so that gold is tried in
    exactly the form in which a candidate's work is.
    """
    base = await write_base(DiskObjects(packs), TaskKeys("gold"), workspace, Excludes())
    return base.tree
