"""D of every snapshot: changed lines against the initial workspace (evaluation.md §10.5)."""

from collections.abc import Iterator

from stayer_evaluator.adjudication.difflines import counted, diff_lines
from stayer_evaluator.snapshots.manifest import Node, Tree
from stayer_evaluator.snapshots.restore import PieceSource

#: Contents above this are no source text and count 0: they would not fit the sidecar's memory.
MAX_CONTENT = 64 * 1024**2


class DiffSizes:
    """Sizes against one initial tree; each pair of contents is compared once."""

    def __init__(self, initial: Tree, source: PieceSource) -> None:
        self.initial = initial
        self.source = source
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

    def of(self, tree: Tree) -> int:
        """Added plus removed lines between the initial tree and `tree`. Reads contents."""
        return sum(self._pair(before, after) for before, after in self._differing(tree))

    def _differing(self, tree: Tree) -> Iterator[tuple[Node | None, Node | None]]:
        for path in self.initial.keys() | tree.keys():
            before, after = self.initial.get(path), tree.get(path)
            if before is not after and counted(path):
                yield _file(before), _file(after)

    def _pair(self, before: Node | None, after: Node | None) -> int:
        key = (_hashes(before), _hashes(after))
        if key[0] == key[1]:
            return 0
        if key not in self._known:
            self._known[key] = diff_lines(self._content(before), self._content(after))
        return self._known[key]

    def _content(self, node: Node | None) -> bytes | None:
        if node is None:
            return None
        if node.size > MAX_CONTENT:
            return b"\0"  # as binary
        return b"".join(self.source.read(piece) for piece in node.pieces)


def _file(node: Node | None) -> Node | None:
    """Only regular files have lines."""
    return node if node is not None and node.type == "file" else None


def _hashes(node: Node | None) -> tuple[str, ...]:
    return ("absent",) if node is None else tuple(piece.hash for piece in node.pieces)
