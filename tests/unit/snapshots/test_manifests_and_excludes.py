"""Pure parts: names, excludes, manifests that contradict themselves, prune plans."""

from __future__ import annotations

from typing import Any

import pytest

from stayer_evaluator.records.queue import Chunk, FileRecord
from stayer_evaluator.snapshots import names
from stayer_evaluator.snapshots.excludes import Excludes, OnlyGit, excludes
from stayer_evaluator.snapshots.manifest import (
    BadManifest,
    Node,
    expand,
    full_manifest,
    implemented,
    tree_digest,
    tree_of,
)
from stayer_evaluator.snapshots.prune import plan_prune
from stayer_evaluator.snapshots.walk import settled

BAD_PATHS = ["", "/", "/etc", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b"]
BAD_TEXTS = ["b64:!", "b64:YQ==", "b64:YQ", "\udcff", "b64:Li4=", "b64:"]


@pytest.mark.parametrize("text", [*BAD_PATHS, *BAD_TEXTS], ids=repr)
def test_paths_that_no_walk_writes_are_refused(text: str) -> None:
    with pytest.raises(names.UnsafePath):
        names.decode_path(text)


@pytest.mark.parametrize("raw", [b"\xff", b"b64:x", b"a\nb", "é".encode(), b"-rf", b"..."])
def test_odd_paths_come_back(raw: bytes) -> None:
    assert names.decode_path(names.encode(raw)) == raw


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        (b"a", b"b", False),
        (b"a", b"../b", True),
        (b"d/a", b"../b", False),
        (b"d/a", b"../../b", True),
        (b"d/a", b"x/../../../b", True),
        (b"a", b"/abs", True),
        (b"a", b"./b//c", False),
    ],
)
def test_links_that_lead_out_are_told_by_their_text(path: bytes, target: bytes, out: bool) -> None:
    assert names.escapes(path, target) is out


@pytest.mark.parametrize(
    ("pattern", "path", "out"),
    [
        ("*.log", "a/b.log", True),
        ("*.log", "b.logs", False),
        ("build/*", "build/x", True),
        ("build/*", "build/x/y", False),
        ("build/**", "build/x/y", True),
        ("build/**", "other/build/x", False),
        ("**/tmp", "tmp", True),
        ("**/tmp", "a/b/tmp", True),
        ("/only", "only", True),
        ("a?c", "abc", True),
        ("a?c/x", "a/c/x", False),
        ("[x]", "[x]", True),
        ("*", "requirement_patches/u.diff", False),
        ("*", "agent_tests/deep/t.py", False),
        ("*", "agent_plans", False),
        ("*", "x/agent_plans", True),
    ],
)
def test_patterns(pattern: str, path: str, out: bool) -> None:
    directory, _, name = path.rpartition("/")

    found = excludes(patterns=(pattern,)).leaves_out(directory + "/" if directory else "", name)

    assert found is out


def test_caches_go_even_where_everything_is_kept_and_dependencies_only_by_option() -> None:
    assert excludes().leaves_out("agent_tests/", "__pycache__")
    assert excludes().leaves_out("a/", "x.pyc")
    assert not excludes().leaves_out("", "node_modules")
    assert excludes(public=True).leaves_out("a/", "node_modules")
    assert not Excludes(names=frozenset(), suffixes=()).leaves_out("", ".git")
    assert [OnlyGit().leaves_out("", name) for name in (".git", "src")] == [False, True]
    assert OnlyGit().leaves_out(".git/", "index.lock")


def record(path: str = "a", **changes: Any) -> FileRecord:
    return FileRecord(**{"path": path, "type": "file", "mode": 0o644, **changes})


CHUNK = Chunk(hash="0" * 64, pack=0, offset=0, length=1, size=3)
CONTRADICTIONS: list[tuple[str, tuple[FileRecord, ...], tuple[str, ...]]] = [
    ("twice the same path", (record(), record()), ()),
    ("twice in two spellings", (record("é"), record("é", mode=0o600)), ()),
    ("a pack that is not there", (record(size=3, chunks=(CHUNK,)),), ()),
    ("another size than its chunks", (record(size=4),), ()),
    ("a link without target", (record(type="link"),), ()),
    ("a file with target", (record(target="x"),), ()),
    ("a directory with content", (record(type="dir", size=3, chunks=(CHUNK,)),), ()),
    ("removed but not there", (), ("ghost",)),
]


@pytest.mark.parametrize(
    ("changed", "removed"), [pytest.param(c, r, id=i) for i, c, r in CONTRADICTIONS]
)
def test_manifests_that_contradict_themselves_are_refused(
    changed: tuple[FileRecord, ...], removed: tuple[str, ...]
) -> None:
    with pytest.raises(BadManifest):
        expand({}, (), changed, removed)


def test_a_whole_manifest_must_give_its_digest() -> None:
    manifest = full_manifest({b"a": Node("dir", 0o755)})

    with pytest.raises(BadManifest):
        tree_of(manifest.model_copy(update={"tree": "0" * 64}))


def test_special_mode_bits_of_a_manifest_are_dropped() -> None:
    (node,) = expand({}, (), (record(mode=0o6755),), ()).values()

    assert node.mode == 0o755


def test_digests_differ_where_trees_do() -> None:
    trees: list[dict[bytes, Node]] = [
        {},
        {b"a": Node("file", 0o644)},
        {b"b": Node("file", 0o644)},
        {b"a": Node("file", 0o755)},
        {b"a": Node("dir", 0o644)},
        {b"a": Node("link", 0o644, target=b"")},
        {b"a": Node("link", 0o644, target=b"b")},
        {b"a": Node("file", 0o644), b"b": Node("file", 0o644)},
    ]

    assert len({tree_digest(tree) for tree in trees}) == len(trees)


def test_implemented_units_are_those_with_a_patch_that_holds_something() -> None:
    file, empty = Node("file", 0o644, 3), Node("file", 0o644)
    tree = {
        b"requirement_patches": Node("dir", 0o755),
        b"requirement_patches/b.diff": file,
        b"requirement_patches/a.diff": file,
        b"requirement_patches/empty.diff": empty,
        b"requirement_patches/.diff": file,
        b"requirement_patches/x/deep.diff": file,
        b"requirement_patches/note.txt": file,
        b"requirement_patches/link.diff": Node("link", 0o777, 0, b"a.diff"),
        b"other/requirement_patches/c.diff": file,
    }

    assert implemented(tree) == ("a", "b")


@pytest.mark.parametrize(
    ("age_ms", "trusted"),
    [(1000, True), (21, True), (19, False), (0, False), (-500, False), (-2000, True)],
)
def test_a_file_that_changed_around_its_reading_is_not_trusted(age_ms: int, trusted: bool) -> None:
    now = 1_700_000_000_000_000_000
    signature = (1, now, now - age_ms * 1_000_000, 1, 0o100644)

    assert settled(signature, now) == (signature if trusted else None)


RUN = "runs/lab/demo-1a2b3c4d/"
TRIAL = f"{RUN}demo-0/"
KEYS = [
    f"{TRIAL}trial.json",
    f"{TRIAL}queue/00000000",
    f"{TRIAL}packs/ab",
    f"{TRIAL}resume/00000000",
    f"{TRIAL}verdicts/00000001",
    f"{TRIAL}results.json",
    f"{RUN}results.json",
    "runs/lab/other-1a2b3c4d/demo-0/trial.json",
    "tasks/d1/task.json",
]


def test_pruning_a_run_deletes_announcements_first_and_documents_last() -> None:
    plan = plan_prune(KEYS, runs=(RUN,))

    assert plan.delete[:2] == (f"{TRIAL}queue/00000000", f"{TRIAL}verdicts/00000001")
    assert plan.delete[-3:] == (
        f"{TRIAL}results.json",
        f"{TRIAL}trial.json",
        f"{RUN}results.json",
    )
    assert (len(plan.delete), plan.kept) == (7, 2)
    assert plan.by_prefix == ((RUN, 7),)


def test_pruning_can_keep_what_results_rest_on_and_take_tasks() -> None:
    plan = plan_prune(KEYS, runs=(RUN,), tasks=("d1",), keep_results=True)

    assert set(plan.delete) == {
        f"{TRIAL}queue/00000000",
        f"{TRIAL}packs/ab",
        f"{TRIAL}resume/00000000",
        "tasks/d1/task.json",
    }


@pytest.mark.parametrize("prefix", ["", "runs/", "runs/lab/", "tasks/d1/x/", "runs/lab/demo-1"])
def test_only_whole_runs_can_be_pruned(prefix: str) -> None:
    with pytest.raises(ValueError, match="not a run's prefix"):
        plan_prune(KEYS, runs=(prefix,))
