"""The resume-only layer: `.git` and HOME, for the next agent pod and never for the adjudicator.

Saved at round ends and at most once a minute, in PUTs of its own: contents in packs, then an index
under the next free `resume/<number>`.
"""

from pathlib import Path
from typing import Literal

import pydantic
from pydantic import Field

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.queue import BaseManifest, EpisodeCursor, Writer
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.collect import Collector, PackStore
from stayer_evaluator.snapshots.excludes import Excludes, Filter, OnlyGit
from stayer_evaluator.snapshots.manifest import (
    BadManifest,
    Piece,
    full_manifest,
    pieces_of,
    tree_of,
)
from stayer_evaluator.snapshots.walk import Limits
from stayer_evaluator.storage.dense import dense_length
from stayer_evaluator.storage.documents import CorruptObject, compress, decompress
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.queue import QueueWriter
from stayer_evaluator.storage.store import ObjectExists, ObjectStore

LIMITS = Limits(files=50_000, bytes=512 * 1024**2)
HOME_EXCLUDES = Excludes(names=frozenset({".cache"}), suffixes=())


class ResumeIndex(Record):
    """One saved state of the layer."""

    schema_version: Literal["stayer.dev/resume/v1"] = "stayer.dev/resume/v1"
    number: int = Field(ge=0)
    snapshot: int | None = Field(description="newest snapshot when it was saved, null before any")
    writer: Writer
    time: float
    episode: EpisodeCursor | None = Field(
        default=None,
        description="where the episode stood; ahead of the newest snapshot's when rounds ended "
        "since without a change",
    )
    git: BaseManifest = Field(description="the workspace's .git, paths from the workspace")
    home: BaseManifest = Field(description="the agent's HOME")


class ResumeLayer:
    """Saves the layer of one trial. `previous` spares what an earlier pod has stored."""

    def __init__(
        self,
        workspace: Path,
        home: Path,
        queue: QueueWriter,
        previous: ResumeIndex | None = None,
    ) -> None:
        self.queue = queue
        self.packs = PackStore(queue.store, queue.keys.pack)
        self._next = 0 if previous is None else previous.number + 1
        git_tree = {} if previous is None else tree_of(previous.git)
        home_tree = {} if previous is None else tree_of(previous.home)
        self._git = _Part(workspace, OnlyGit(), pieces_of(git_tree))
        self._home = _Part(home, HOME_EXCLUDES, pieces_of(home_tree))
        self._saved: tuple[str, str, int] | None = None

    def close(self) -> None:
        """End the threads."""
        self._git.close()
        self._home.close()

    async def save(self, time: float, episode: EpisodeCursor | None = None) -> int | None:
        """Save both parts; returns the number, None when nothing has changed since the last save:
        neither a tree nor the number of finished rounds.

        Raises StoreError, OSError; the next call then saves all that is new.
        """
        git = await self._git.manifest(self.packs)
        home = await self._home.manifest(self.packs)
        state = (git.tree, home.tree, 0 if episode is None else len(episode.rounds))
        if state == self._saved:
            return None
        last = self.queue.last_snapshot
        index = ResumeIndex(
            number=self._next,
            snapshot=None if last is None else last.snapshot,
            writer=self.queue.writer,
            time=time,
            episode=episode,
            git=git,
            home=home,
        )
        number = await self._create(index)
        self._saved = state
        return number

    async def _create(self, index: ResumeIndex) -> int:
        """Create the index at the next free number.

        A number that is taken is no fence: a recorder that was cut off may still have written one
        after its successor looked; the queue decides who is fenced.
        """
        while True:
            numbered = index.model_copy(update={"number": self._next})
            self._next += 1
            data = compress(numbered)
            try:
                await self.queue.store.create(self.queue.keys.resume(numbered.number), data)
            except ObjectExists:
                continue
            return numbered.number


class _Part:
    """One of the two trees, with its newest manifest."""

    def __init__(self, root: Path, excludes: Filter, known: dict[str, Piece]) -> None:
        self._collector = Collector(root, excludes, LIMITS, known)
        self._manifest = full_manifest({})

    def close(self) -> None:
        self._collector.close()

    async def manifest(self, packs: PackStore) -> BaseManifest:
        collected = await self._collector.collect(packs)
        if collected is not None:
            manifest = full_manifest(collected.tree)
            await self._collector.settle(collected)
            self._manifest = manifest
        return self._manifest


async def newest_resume(store: ObjectStore, keys: TrialKeys) -> ResumeIndex | None:
    """The newest saved layer of a trial. Raises CorruptObject, StoreError."""
    count = await dense_length(store, keys.resume)
    if count == 0:
        return None
    data = decompress(await store.get(keys.resume(count - 1)))
    try:
        index = ResumeIndex.from_bytes(data)
        tree_of(index.git)
        tree_of(index.home)
    except (pydantic.ValidationError, BadManifest, names.UnsafePath) as error:
        raise CorruptObject(f"resume layer {count - 1}: {error}") from error
    return index
