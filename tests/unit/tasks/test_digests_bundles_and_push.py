from __future__ import annotations

import asyncio
import io
import os
import tarfile
from pathlib import Path

import pytest
import zstandard

from makers_tasks import IMAGE, write_task
from stayer_evaluator.records.task import TaskRecord
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.memory import MemoryStore
from stayer_evaluator.tasks.bundle import (
    BadBundle,
    extract,
    extract_suite,
    pack_files,
    pack_part,
    read_bundle,
)
from stayer_evaluator.tasks.digest import task_digest, tree_digest
from stayer_evaluator.tasks.problems import InvalidTask
from stayer_evaluator.tasks.push import plan_push, push


def test_digests_and_archives_depend_on_content_alone(tmp_path: Path) -> None:
    one, two = write_task(tmp_path / "one"), write_task(tmp_path / "two")
    os.utime(two / "task.yaml", (1, 1))
    (two / "task.yaml").chmod(0o600)
    (two / "__pycache__").mkdir()
    (two / "__pycache__/x.pyc").write_bytes(b"x")
    assert tree_digest(one) == tree_digest(two)
    assert [pack_part(one, p) for p in ("public", "suite", "gold")] == [
        pack_part(two, p) for p in ("public", "suite", "gold")
    ]  # fmt: skip


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_any_change_of_the_tree_changes_its_digest(tmp_path: Path, change: str) -> None:
    root = write_task(tmp_path)
    before = tree_digest(root)
    file = root / "base/calc/__init__.py"
    match change:
        case "content":
            file.write_text("VERSION = '2'\n")
        case "name":
            file.rename(file.with_name("other.py"))
        case "mode":
            file.chmod(0o755)
    assert tree_digest(root) != before


def test_the_task_digest_binds_the_image() -> None:
    other = IMAGE.replace("1" * 64, "2" * 64)
    assert task_digest("t", IMAGE) != task_digest("t", other)
    assert task_digest("t", IMAGE) == task_digest("t", IMAGE.replace("registry.test", "mirror"))
    with pytest.raises(ValueError, match="has no digest"):
        task_digest("t", "registry.test/calc:latest")


def test_what_goes_into_which_archive(tmp_path: Path) -> None:
    root = write_task(tmp_path, files={"solution.sh": "x", "patch_order.json": "[]"})
    assert set(read_bundle(pack_part(root, "public"))) == {
        "task.yaml",
        "requirements/add.yaml",
        "requirements/parse.yaml",
        "requirements/run.yaml",
    }
    assert set(read_bundle(pack_part(root, "suite"))) == {
        "run-tests.sh",
        "tests/add/test_add.py",
        "tests/parse/test_parse.py",
        "tests/run/test_run.py",
    }
    assert set(read_bundle(pack_part(root, "gold"))) == {
        "gold_patches/add.diff", "gold_patches/parse.diff", "gold_patches/run.diff",
        "solution.sh", "patch_order.json",
    }  # fmt: skip


def test_the_suite_is_unpacked_as_it_lies_in_the_container(tmp_path: Path) -> None:
    target = tmp_path / "suite"
    target.mkdir()
    extract_suite(pack_part(write_task(tmp_path), "suite"), target)
    assert (target / "run-tests.sh").is_file()
    assert (target / "add/test_add.py").is_file()
    assert (target / "add").stat().st_mode & 0o777 == 0o755


def test_the_executable_bit_survives(tmp_path: Path) -> None:
    extract(pack_files([("bin/tool", b"x", True), ("note", b"y", False)]), tmp_path)
    assert (tmp_path / "bin/tool").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o644


def archive(member: tarfile.TarInfo, content: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(archive(tarfile.TarInfo("../x"), b"x"), id="a parent"),
        pytest.param(archive(tarfile.TarInfo("/etc/x"), b"x"), id="an absolute name"),
        pytest.param(archive(tarfile.TarInfo("a/../../x"), b"x"), id="a parent inside"),
        pytest.param(archive(link("x", "/etc", tarfile.SYMTYPE)), id="a symbolic link"),
        pytest.param(archive(link("x", "y", tarfile.LNKTYPE)), id="a hard link"),
        pytest.param(archive(link("x", "", tarfile.FIFOTYPE)), id="a FIFO"),
        pytest.param(pack_files([("x", b"1", False), ("x", b"2", False)]), id="a name twice"),
        pytest.param(b"not zstd", id="no compression"),
        pytest.param(zstandard.ZstdCompressor().compress(b"y" * 600), id="no tar"),
    ],
)
def test_a_bad_archive_is_refused_and_nothing_written(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadBundle):
        extract(data, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_is_stopped_while_it_unpacks() -> None:
    with pytest.raises(BadBundle, match="more than 1000 bytes"):
        read_bundle(pack_files([("zeros", bytes(10**7), False)]), max_bytes=1000)


def test_extraction_follows_no_link_and_replaces_no_file(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (target / "bin").symlink_to(outside)
    with pytest.raises(OSError, match="bin"):
        extract(pack_files([("bin/tool", b"x", False)]), target)
    assert list(outside.iterdir()) == []


def test_push_writes_the_entry_last_and_can_be_repeated(tmp_path: Path) -> None:
    store = MemoryStore()
    plan = plan_push(write_task(tmp_path), IMAGE, "tasksets/demo/")
    record = asyncio.run(push(store, plan))
    keys = TaskKeys(record.digest)
    assert list(store.objects) == [
        keys.public, keys.suite, keys.gold, keys.record, "tasksets/demo/task_calc.json",
    ]  # fmt: skip
    assert TaskRecord.from_bytes(store.objects["tasksets/demo/task_calc.json"]) == record
    writes = store.writes
    asyncio.run(push(store, plan))
    assert store.writes == writes + 1


def test_a_push_without_image_digest_names_the_image(tmp_path: Path) -> None:
    with pytest.raises(InvalidTask, match="image: found 'calc:latest'; accepted: name@sha256:"):
        plan_push(write_task(tmp_path), "calc:latest", "tasksets/demo")


def test_an_invalid_task_is_not_pushed(tmp_path: Path) -> None:
    root = write_task(tmp_path)
    (root / "Dockerfile").unlink()
    with pytest.raises(InvalidTask, match="Dockerfile"):
        plan_push(root, IMAGE, "tasksets/demo")
