"""`python3 -m stayer_evaluator.episode.initial_commit`: makes /workspace a git repository with one
commit, the starting state (evaluation.md §4). An init container runs it before any agent code.

Written without git: no filter, hook or configuration of the image can take part, and equal trees
give the same commit in every trial.
"""

import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from stayer_evaluator.episode.gitfiles import Blob, PackWriter, commit_bytes, index_bytes, tree_ids
from stayer_evaluator.records import places

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = stayer-agent
\temail = agent@stayer.local
[commit]
\tgpgsign = false
"""


@dataclass(frozen=True, slots=True)
class Commit:
    """What was made."""

    id: str
    files: int


def make_initial_commit(workspace: Path, uid: int, gid: int) -> Commit:
    """Replace `.git` below `workspace` by a repository whose only commit holds everything there,
    ignored files too. All of it belongs to `uid`. Raises OSError.
    """
    git = workspace / ".git"
    _remove(git)
    for folder in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
        (git / folder).mkdir(parents=True)
    with PackWriter(git / "objects/pack") as pack:
        blobs = [_blob(pack, workspace, path) for path in _paths(workspace)]
        root = tree_ids(blobs, pack)
        commit = pack.add("commit", commit_bytes(root))
    (git / "refs/heads/main").write_text(f"{commit.hex()}\n")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(CONFIG)
    (git / "info/exclude").write_text("")
    (git / "index").write_bytes(index_bytes(blobs))
    give(git, uid, gid)
    return Commit(commit.hex(), len(blobs))


def _remove(git: Path) -> None:
    if git.is_dir() and not git.is_symlink():
        shutil.rmtree(git)
    else:
        git.unlink(missing_ok=True)


def _paths(workspace: Path) -> list[bytes]:
    """Relative paths of files and links, sorted; whatever is called `.git` is left out."""
    root = os.fsencode(workspace)
    found = []
    folders = [b""]
    while folders:
        folder = folders.pop()
        with os.scandir(root + b"/" + folder) as entries:
            for entry in entries:
                path = folder + b"/" + entry.name if folder else entry.name
                if entry.name.lower() == b".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    found.append(path)
    return sorted(found)


def _blob(pack: PackWriter, workspace: Path, path: bytes) -> Blob:
    full = os.fsencode(workspace) + b"/" + path
    seen = os.lstat(full)
    if stat.S_ISLNK(seen.st_mode):
        return Blob(
            path, 0o120000, pack.add("blob", os.fsencode(Path(os.fsdecode(full)).readlink())), seen
        )
    fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        mode = 0o100755 if seen.st_mode & stat.S_IXUSR else 0o100644
        return Blob(path, mode, pack.add_file(file, seen.st_size), seen)


def give(git: Path, uid: int, gid: int) -> None:
    """Make a repository of ours belong to the agent. Raises OSError."""
    os.chown(git, uid, gid)
    for folder, folders, names in os.walk(git):
        for name in (*folders, *names):
            os.chown(Path(folder) / name, uid, gid, follow_symlinks=False)


def main() -> int:
    """Entry point of the init container."""
    workspace = Path(places.WORKSPACE)
    try:
        commit = make_initial_commit(workspace, places.AGENT_UID, places.AGENT_UID)
    except OSError as error:
        sys.stderr.write(f"the initial commit of {workspace} could not be made: {error}\n")
        return 1
    sys.stdout.write(f"commit {commit.id}: {commit.files} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
