"""`python3 -m stayer_evaluator.episode.restore`: brings workspace, `.git` and HOME back.

An init container between the recorder's start and the task's. What it needs lies in the state
directory, put there by the recorder; in a first incarnation there is nothing to do. Killed at any
point, it is run again and starts over.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from stayer_evaluator.episode.initial_commit import give
from stayer_evaluator.records import places
from stayer_evaluator.snapshots.restore import Owner
from stayer_evaluator.snapshots.staging import restore_staged
from stayer_evaluator.storage.store import StoreError


def run_restore(state: Path, workspace: Path, home: Path, owner: Owner | None) -> int | None:
    """Restore what the state directory holds; the snapshot's count, None when there is nothing.

    A snapshot holds no `.git`: it comes from the resume layer, else the initial commit's is kept.
    Raises StoreError (damaged evidence), OSError.
    """
    git = workspace / ".git"
    with tempfile.TemporaryDirectory() as scratch:
        aside = Path(scratch) / ".git"
        if git.is_dir() and not git.is_symlink():
            shutil.copytree(git, aside, symlinks=True)
        restored = restore_staged(state, workspace, home, owner)
        if restored is not None and aside.is_dir() and not git.exists():
            shutil.copytree(aside, git, symlinks=True)
            if owner is not None:
                give(git, owner.uid, owner.gid)
    return restored


def main() -> int:
    """Entry point of the init container."""
    owner = Owner(places.AGENT_UID, places.AGENT_UID)
    try:
        restored = run_restore(Path(places.STATE), Path(places.WORKSPACE), Path(places.HOME), owner)
    except (StoreError, OSError) as error:
        sys.stderr.write(f"the workspace could not be restored: {error}\n")
        return 1
    text = "nothing to restore" if restored is None else f"restored snapshot {restored}"
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
