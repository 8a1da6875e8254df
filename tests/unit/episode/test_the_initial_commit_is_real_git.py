"""The repository that we write without git, read back with git."""

import os
import subprocess

import pytest

from stayer_evaluator.episode.gitfiles import pack_index
from stayer_evaluator.episode.initial_commit import make_initial_commit


def git(directory, *arguments):
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "workspace"
    (root / "src/deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "src/a.py").write_text("print()\n")
    (root / "src/run").write_text("#!/bin/sh\n")
    (root / "src/run").chmod(0o755)
    (root / "src.txt").write_text("sorts between src and src/\n")
    (root / "src-x").write_text("")
    (root / "src/deep/link").symlink_to("../nowhere")
    (root / "src/big").write_bytes(os.urandom(3 * 1024 * 1024 + 17))
    (root / "src/big2").write_bytes((root / "src/big").read_bytes())
    (root / ".gitignore").write_text("ignored\n")
    (root / "ignored").write_text("kept in the starting state\n")
    (root / os.fsdecode(b"odd\xff name\n")).write_text("x")
    os.mkfifo(root / "fifo")
    return root


def test_git_finds_one_clean_commit_with_every_file(workspace):
    commit = make_initial_commit(workspace, os.getuid(), os.getgid())

    git(workspace, "fsck", "--strict", "--full")
    assert git(workspace, "rev-list", "--all").split() == [commit.id]
    assert git(workspace, "status", "--porcelain", "--ignored").split("\n") == [""]
    listed = git(workspace, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")[:-1]
    assert sorted(listed) == sorted(
        [
            ".gitignore", "ignored", "src-x", "src.txt", "src/a.py", "src/big", "src/big2",
            "src/deep/link", "src/run", "odd\udcff name\n",
        ]
    )  # fmt: skip
    assert commit.files == len(listed)
    assert "100755 blob" in git(workspace, "ls-tree", "HEAD", "src/run")
    assert "120000 blob" in git(workspace, "ls-tree", "HEAD", "src/deep/link")


def test_git_can_go_on_from_there(workspace):
    make_initial_commit(workspace, os.getuid(), os.getgid())
    (workspace / "src/a.py").write_text("print(1)\n")

    git(workspace, "add", "-A")
    diff = git(workspace, "diff", "--cached", "--stat")
    git(workspace, "commit", "-qm", "impl: a")

    assert "src/a.py | 2 +-" in diff
    assert len(git(workspace, "rev-list", "HEAD").split()) == 2


def test_equal_trees_have_equal_commits_and_an_old_repository_goes(workspace):
    first = make_initial_commit(workspace, os.getuid(), os.getgid())
    hook = workspace / ".git/hooks/pre-commit"
    hook.parent.mkdir()
    hook.write_text("exit 1")
    (workspace / "src/a.py").touch()

    second = make_initial_commit(workspace, os.getuid(), os.getgid())

    assert first == second
    assert not hook.exists()


@pytest.mark.parametrize("kind", ["file", "link", "none"])
def test_whatever_is_called_git_is_replaced(tmp_path, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    if kind == "file":
        (workspace / ".git").write_text("gitdir: ../outside")
    elif kind == "link":
        (workspace / ".git").symlink_to(outside)
    (workspace / "sub").mkdir()
    (workspace / "sub/.git").mkdir()
    (workspace / "sub/.git/config").write_text("[core] fsmonitor = touch /tmp/x")

    commit = make_initial_commit(workspace, os.getuid(), os.getgid())

    assert commit.files == 0
    assert list(outside.iterdir()) == []
    git(workspace, "fsck", "--strict")


def test_an_index_of_a_pack_beyond_2_gib_uses_its_second_table():
    ids = {bytes([n]) * 20: offset for n, offset in ((1, 12), (2, 2**31), (3, 2**40))}

    data = pack_index(ids, dict.fromkeys(ids, 7), b"p" * 20)

    offsets = data[8 + 1024 + 60 + 12 : 8 + 1024 + 60 + 24]
    assert [int.from_bytes(offsets[i : i + 4]) for i in (0, 4, 8)] == [12, 2**31, 2**31 + 1]
    assert int.from_bytes(data[8 + 1024 + 60 + 32 : 8 + 1024 + 60 + 40]) == 2**40
