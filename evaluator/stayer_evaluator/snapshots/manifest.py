"""Trees as data: their digest, the delta against a base, and the way back. Pure.

A tree maps raw relative paths to nodes. It lists every directory that holds something, so that
modes and empty directories survive.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import blake3

from stayer_evaluator.records.queue import BaseManifest, Chunk, FileRecord
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.unchecked import chunk, file_record

PATCHES = b"requirement_patches/"
PATCH_SUFFIX = b".diff"


class BadManifest(ValueError):  # noqa: N818 (reads as what happened)
    """A manifest that contradicts itself or its base."""


class Piece(NamedTuple):
    """Content of a file, or of 1 MiB of it, and where its compressed bytes lie.

    Like the other records that exist once a file, a named tuple: made in a third of the time.
    """

    hash: str
    pack: str
    """Object key of the pack."""
    offset: int
    length: int
    """Of its frame's compressed bytes in the pack."""
    at: int
    """Where in the frame's plain bytes it begins."""
    size: int


class Node(NamedTuple):
    """One path of a tree."""

    type: Literal["file", "dir", "link"]
    mode: int
    size: int = 0
    target: bytes | None = None
    pieces: tuple[Piece, ...] = ()

    def same_as(self, other: "Node | None") -> bool:
        """Equal in everything that a restore brings back, wherever the bytes are stored."""
        return self is other or (
            other is not None
            and (self.type, self.mode, self.size, self.target)
            == (other.type, other.mode, other.size, other.target)
            and [piece.hash for piece in self.pieces] == [piece.hash for piece in other.pieces]
        )


Tree = Mapping[bytes, Node]


@dataclass(frozen=True, slots=True)
class Delta:
    """What a SnapshotEntry says of a tree."""

    packs: tuple[str, ...]
    changed: tuple[FileRecord, ...]
    removed: tuple[str, ...]


def tree_digest(tree: Tree) -> str:
    """blake3 over the tree, sorted by path: three NUL-terminated fields an entry.

    Neither paths nor targets can hold a NUL, so different trees give different input.
    """
    lines = []
    for path in sorted(tree):
        kind, mode, size, target, pieces = tree[path]
        if target is None:
            whole = pieces[0].hash if len(pieces) == 1 else "".join([p.hash for p in pieces])
            target = whole.encode()
        lines.append(b"%b\0%b %o %d\0%b\0" % (path, kind.encode(), mode, size, target))
    return blake3.blake3(b"".join(lines)).hexdigest()


def delta(base: Tree, tree: Tree) -> Delta:
    """What turns `base` into `tree`, sorted by raw path."""
    packs: dict[str, int] = {}
    changed = []
    for path in sorted(tree):
        node, before = tree[path], base.get(path)
        if before is None or not node.same_as(before):
            changed.append(_record(path, node, packs))
    removed = tuple(names.encode(path) for path in sorted(base.keys() - tree.keys()))
    return Delta(packs=tuple(packs), changed=tuple(changed), removed=removed)


def expand(
    base: Tree, packs: tuple[str, ...], changed: Iterable[FileRecord], removed: Iterable[str]
) -> dict[bytes, Node]:
    """The full tree of a delta. Raises BadManifest, names.UnsafePath."""
    tree = dict(base)
    for text in removed:
        if tree.pop(names.decode_path(text), None) is None:
            raise BadManifest(f"{text!r} is removed but not in the base")
    seen: set[bytes] = set()
    for record in changed:
        path = names.decode_path(record.path)
        if path in seen:
            raise BadManifest(f"{record.path!r} is listed twice")
        seen.add(path)
        tree[path] = _node(record, packs)
    return tree


def full_manifest(tree: Tree) -> BaseManifest:
    """The whole tree as one document."""
    whole = delta({}, tree)
    return BaseManifest(packs=whole.packs, entries=whole.changed, tree=tree_digest(tree))


def tree_of(manifest: BaseManifest) -> dict[bytes, Node]:
    """The tree of a whole manifest, checked against its digest. Raises BadManifest, UnsafePath."""
    tree = expand({}, manifest.packs, manifest.entries, ())
    if tree_digest(tree) != manifest.tree:
        raise BadManifest("the entries do not give the digest that the manifest states")
    return tree


def implemented(tree: Tree) -> tuple[str, ...]:
    """Slugs with a non-empty `requirement_patches/<slug>.diff`, sorted (evaluation.md §4)."""
    if PATCHES[:-1] not in tree:
        return ()
    slugs = [
        names.encode(path[len(PATCHES) : -len(PATCH_SUFFIX)])
        for path, node in tree.items()
        if path.startswith(PATCHES)
        and path.endswith(PATCH_SUFFIX)
        and node.type == "file"
        and node.size
    ]
    return tuple(sorted(slug for slug in slugs if slug and "/" not in slug))


def pieces_of(tree: Tree) -> dict[str, Piece]:
    """Every stored content of a tree by its hash."""
    return {piece.hash: piece for node in tree.values() for piece in node.pieces}


def _record(path: bytes, node: Node, packs: dict[str, int]) -> FileRecord:
    kind, mode, size, target, pieces = node
    chunks = []
    for digest, pack, offset, length, at, plain in pieces:
        number = packs.setdefault(pack, len(packs))
        chunks.append(chunk(digest, number, offset, length, at, plain))
    link = None if target is None else names.encode(target)
    return file_record(names.encode(path), kind, mode, size, link, tuple(chunks))


def _node(record: FileRecord, packs: tuple[str, ...]) -> Node:
    if (record.target is not None) != (record.type == "link"):
        raise BadManifest(f"{record.path!r}: a target belongs to a link, and only there")
    if record.chunks and record.type != "file":
        raise BadManifest(f"{record.path!r}: only a file has content")
    if sum(part.size for part in record.chunks) != record.size:
        raise BadManifest(f"{record.path!r}: sizes of the chunks and of the file differ")
    return Node(
        type=record.type,
        mode=record.mode & 0o777,
        size=record.size,
        target=None if record.target is None else names.decode(record.target),
        pieces=tuple(_piece(part, packs, record.path) for part in record.chunks),
    )


def _piece(part: Chunk, packs: tuple[str, ...], path: str) -> Piece:
    if not 0 <= part.pack < len(packs):
        raise BadManifest(f"{path!r}: there is no pack {part.pack}")
    pack = packs[part.pack]
    return Piece(part.hash, pack, part.offset, part.length, part.at, part.size)
