"""Queue entries: the only way from the agent pod to the adjudicator pod (design.md §4).

An entry lies under `queue/<number>`, zstd-compressed JSON, created with `If-None-Match: *`; numbers
are dense from 0, entries immutable. Entry 0 of a trial is always the first epoch; the first
snapshot (snapshot 0) is the seeded workspace.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from stayer_evaluator.records.base import Record
from stayer_evaluator.records.outcomes import FailureMode


class Writer(Record):
    """Who wrote: the incarnation of its pod and the nonce of this start of its process."""

    incarnation: int = Field(ge=1)
    nonce: str


class RoundRecord(Record):
    """One finished outer-loop round (evaluation.md §5)."""

    number: int = Field(ge=1)
    seconds: float
    failure_mode: FailureMode
    cause: Literal["first", "external_restart", "compaction"] = "first"
    rate_limit_retries: int = 0
    changed: bool = Field(default=True, description="the workspace changed in this round")


class EpisodeCursor(Record):
    """Where an episode stands; enough to go on in another pod."""

    round: int = Field(default=1, ge=1)
    step: int | None = Field(
        default=None, description="index of the last finished scripted step of this round"
    )
    spent_seconds: float = Field(default=0, description="agent time spent, back-off included")
    rounds: tuple[RoundRecord, ...] = Field(default=(), description="finished rounds")
    infra_restarts: int = 0


class EpochEntry(Record):
    """A recorder's start: from here on only this writer may append."""

    kind: Literal["epoch"] = "epoch"
    number: int = Field(ge=0)
    writer: Writer
    time: float = Field(description="seconds since the epoch, wall clock")


PathProblem = Literal[
    "unstable",
    "vanished",
    "unreadable",
    "special_file",
    "too_large",
    "too_deep",
    "too_many_files",
    "escaping_link",
    "setuid_stripped",
    "sparse_capped",
]
"""Why a path could not be stored as it is."""


class PathReport(Record):
    """A path that could not be stored as it is, with the reason."""

    path: str = Field(description="as in FileRecord.path")
    problem: PathProblem
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Chunk:
    """A piece of a file's content: where its bytes lie.

    Like FileRecord no Record but a dataclass: a manifest holds 100,000 of them, and a tenth of the
    memory is enough. The fields of both stand sorted by name, as canonical JSON has them.
    """

    at: int = Field(default=0, ge=0, description="where in the frame's plain bytes they begin")
    hash: str = Field(description="blake3 of the plain bytes, 64 hex digits")
    length: int = Field(ge=0, description="compressed bytes")
    offset: int = Field(ge=0, description="of its frame's compressed bytes in the pack")
    pack: int = Field(description="index into the manifest's `packs`")
    size: int = Field(ge=0, description="plain bytes")


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class FileRecord:
    """One path of a tree. `path` is relative; bytes that are not UTF-8 are surrogate-escaped and
    then written as `b64:` + base64 of the raw bytes (as is a path that itself starts with `b64:`).
    """

    chunks: tuple[Chunk, ...] = ()
    mode: int = Field(description="permission bits, setuid/setgid/sticky removed")
    path: str
    size: int = 0
    target: str | None = Field(default=None, description="of a link, written like `path`")
    type: Literal["file", "dir", "link"]


class SnapshotEntry(Record):
    """A durable workspace state: a delta against the task's base manifest (never a chain)."""

    in_order: ClassVar[frozenset[str]] = frozenset({"changed"})

    kind: Literal["snapshot"] = "snapshot"
    number: int = Field(ge=0, description="queue number")
    snapshot: int = Field(ge=0, description="dense count of snapshots; 0 = seeded workspace")
    writer: Writer
    time: float
    episode: EpisodeCursor
    base: str = Field(description="sha256 of the base manifest object, empty when there is none")
    packs: tuple[str, ...] = Field(default=(), description="full object keys of packs referred to")
    changed: tuple[FileRecord, ...] = Field(default=(), description="paths new or other than base")
    removed: tuple[str, ...] = Field(default=(), description="paths of base that are gone")
    reports: tuple[PathReport, ...] = ()
    tree: str = Field(description="blake3 over the full sorted tree: equal trees, equal digests")
    files: int = Field(ge=0, description="files in the full tree")
    bytes: int = Field(ge=0, description="plain bytes in the full tree")
    implemented: tuple[str, ...] = Field(
        default=(), description="slugs with a non-empty requirement_patches file, sorted"
    )


class EndEntry(Record):
    """The agent has ended; nothing comes after it."""

    kind: Literal["end"] = "end"
    number: int = Field(ge=0)
    writer: Writer | None = Field(description="null when the operator ended it")
    time: float
    failure_mode: FailureMode
    message: str = ""
    episode: EpisodeCursor


QueueEntry = Annotated[EpochEntry | SnapshotEntry | EndEntry, Field(discriminator="kind")]
queue_entry: TypeAdapter[EpochEntry | SnapshotEntry | EndEntry] = TypeAdapter(QueueEntry)


class BaseManifest(Record):
    """The image's /workspace, stored once per task digest with the inventory."""

    in_order: ClassVar[frozenset[str]] = frozenset({"entries"})

    schema_version: Literal["stayer.dev/base/v1"] = "stayer.dev/base/v1"
    packs: tuple[str, ...]
    entries: tuple[FileRecord, ...] = Field(description="sorted by raw path bytes")
    tree: str
