"""Everything before the agent may start: proofs, takeover of the queue, downloads, in order."""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Protocol

import pydantic

from stayer_evaluator.episode.config import RecorderSettings
from stayer_evaluator.episode.cursor import after_restart, furthest
from stayer_evaluator.episode.gold import Gold, gold_of
from stayer_evaluator.episode.isolation import demand_user_namespace, prove_closed, user_namespace
from stayer_evaluator.episode.session import Session
from stayer_evaluator.records.queue import EpisodeCursor, SnapshotEntry, Writer
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.records.trial import AgentSettings, TrialDocument
from stayer_evaluator.snapshots.base import NO_BASE, Base, read_base
from stayer_evaluator.snapshots.resume import ResumeIndex, newest_resume
from stayer_evaluator.snapshots.staging import stage
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.storage.layout import TaskKeys, TrialKeys
from stayer_evaluator.storage.queue import QueueWriter
from stayer_evaluator.storage.store import ObjectMissing, ObjectStore
from stayer_evaluator.tasks.bundle import BadBundle, extract_suite, read_bundle


class BadTrial(Exception):  # noqa: N818 (reads as what happened)
    """The trial's documents are not what they must be; the message names the object."""


class Wall(Protocol):
    """Seconds since the epoch."""

    def __call__(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """An episode that is ready to start, go on, or be closed."""

    document: TrialDocument
    agent: AgentSettings
    task: TaskRecord
    keys: TrialKeys
    queue: QueueWriter
    base: Base
    cursor: EpisodeCursor
    resumed: bool
    """Another process worked on this episode before."""
    in_place: bool
    """It did so in this very pod: the task container may be running."""
    layer: ResumeIndex | None
    user_namespace: str


async def read_trial(store: ObjectStore, settings: RecorderSettings) -> TrialDocument:
    """The trial's document, checked against its digest. Raises BadTrial, StoreError."""
    key = TrialKeys(settings.prefix).document
    data = await store.get(key)
    found = hashlib.sha256(data).hexdigest()
    if found != settings.trial_sha256:
        raise BadTrial(f"{key}: its sha256 is {found}, the Trial says {settings.trial_sha256}")
    try:
        document = TrialDocument.from_bytes(data)
    except pydantic.ValidationError as error:
        raise BadTrial(f"{key}: {error}") from error
    if document.trial != settings.trial or document.prefix != settings.prefix:
        raise BadTrial(f"{key}: it is the document of {document.trial}")
    return document


async def open_episode(
    store: ObjectStore, settings: RecorderSettings, session: Session, wall: Wall
) -> Opening:
    """Everything up to /started. Nothing is written before the proofs hold.

    Raises NotIsolated, BadTrial, Fenced, StoreError, OSError, also in an ExceptionGroup.
    """
    document = await read_trial(store, settings)
    if document.agent is None:
        raise BadTrial(f"{settings.prefix}trial.json: an agent pod needs an agent")
    namespace = user_namespace()
    demand_user_namespace(document.user_namespaces, namespace)
    keys = TrialKeys(settings.prefix)
    writer = Writer(incarnation=settings.incarnation, nonce=settings.nonce)
    async with asyncio.TaskGroup() as group:  # a refused connection may take its whole time limit
        group.create_task(prove_closed(settings.must_fail, settings.timing.isolation_patience))
        task = group.create_task(_task(store, document))
        base = group.create_task(_base(store, document))
        if document.test_visibility == "attached":
            group.create_task(_fetch_suite(store, document, settings, session))
    queue = await QueueWriter.begin(store, keys, writer, wall())
    found_base = base.result()
    if queue.last_snapshot is not None and not queue.last_snapshot.base:
        found_base = NO_BASE  # the trial began before there was one, and stays with that
    layer = None
    in_place = session.state is not None
    if queue.end is None and queue.last_snapshot is not None and not in_place:
        layer = await newest_resume(store, keys)
        await stage(store, settings.places.state, found_base, queue.last_snapshot, layer)
    return Opening(
        document=document,
        agent=document.agent,
        task=task.result(),
        keys=keys,
        queue=queue,
        base=found_base,
        cursor=_cursor(session, queue.last_snapshot, layer),
        resumed=in_place or queue.next_number > 1,
        in_place=in_place,
        layer=layer,
        user_namespace=namespace,
    )


def _cursor(
    session: Session, last: SnapshotEntry | None, layer: ResumeIndex | None
) -> EpisodeCursor:
    """In place: as the last process knew it, or as it announced just before it died. Else from
    the queue or the layer, whichever is further, one restart more.
    """
    if session.state is not None:
        known = session.state.cursor
        return known if last is None else furthest(known, last.episode)
    if last is None:
        return EpisodeCursor()
    saved = None if layer is None else layer.episode
    return after_restart(last.episode if saved is None else furthest(last.episode, saved))


async def _task(store: ObjectStore, document: TrialDocument) -> TaskRecord:
    key = TaskKeys(document.task.digest).record
    try:
        return TaskRecord.from_bytes(await store.get(key))
    except pydantic.ValidationError as error:
        raise BadTrial(f"{key}: {error}") from error


async def _base(store: ObjectStore, document: TrialDocument) -> Base:
    try:
        return await read_base(store, TaskKeys(document.task.digest))
    except ObjectMissing:
        return NO_BASE


async def _fetch_suite(
    store: ObjectStore, document: TrialDocument, settings: RecorderSettings, session: Session
) -> None:
    """Unpack the visible tests; begun again when it was interrupted."""
    if session.suite_is_there:
        return
    key = TaskKeys(document.task.digest).suite
    wipe(settings.places.suite)
    try:
        extract_suite(await store.get(key), settings.places.suite)
    except BadBundle as error:
        raise BadTrial(f"{key}: {error}") from error
    session.mark_suite()


async def fetch_gold(store: ObjectStore, task: TaskRecord) -> Gold:
    """The task's gold patches. Raises BadTrial, AccessDenied (no grant), StoreError."""
    key = TaskKeys(task.digest).gold
    try:
        return gold_of(read_bundle(await store.get(key)), task)
    except BadBundle as error:
        raise BadTrial(f"{key}: {error}") from error
