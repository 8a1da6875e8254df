"""Empties a directory, whatever an agent left in it: any depth, any modes, no link followed."""

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from stayer_evaluator.snapshots.directories import OPEN_DIRECTORY

BATCH = 10_000


def wipe(root: Path) -> None:
    """Remove everything inside `root`, not `root` itself. Nothing else may work in it meanwhile.

    A directory inside another is moved up to `root` before it is emptied, so that depth costs
    neither recursion nor descriptors (security.md W7). Raises OSError for what cannot be removed.
    """
    top = os.open(root, OPEN_DIRECTORY)
    try:
        _empty(top)
    finally:
        os.close(top)


def _empty(top: int) -> None:
    fresh = (f".wipe-{number}" for number in itertools.count())
    while names := _some_names(top):
        for name in names:
            while not _remove(top, name):
                _flatten(top, name, fresh)


def _some_names(directory: int) -> list[str]:
    with os.scandir(directory) as found:
        return [entry.name for entry in itertools.islice(found, BATCH)]


def _remove(directory: int, name: str) -> bool:
    """Remove a file or an empty directory; False when it holds something."""
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=directory)
        return True
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _flatten(top: int, name: str, fresh: Iterator[str]) -> None:
    """Remove what `name` holds directly, and move its directories up to `top`."""
    os.chmod(name, 0o700, dir_fd=top)
    directory = os.open(name, OPEN_DIRECTORY, dir_fd=top)
    try:
        for inner in _some_names(directory):
            if not _remove(directory, inner):
                # Moving a directory changes its `..`: it must be writable itself.
                os.chmod(inner, 0o700, dir_fd=directory)
                os.rename(inner, _free(top, fresh), src_dir_fd=directory, dst_dir_fd=top)
    finally:
        os.close(directory)


def _free(top: int, fresh: Iterator[str]) -> str:
    """A name that nothing in `top` has."""
    while True:
        name = next(fresh)
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name
