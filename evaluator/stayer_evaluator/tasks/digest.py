"""Digests of a task: of its directory, and of directory and image together."""

import hashlib
import stat
from pathlib import Path

#: Never part of a task: what tools and editors leave behind.
IGNORED_NAMES = frozenset({".git", "__pycache__", ".pytest_cache", ".DS_Store"})
_IMAGE_DIGEST = "@sha256:"


def task_files(root: Path) -> tuple[Path, ...]:
    """Regular files of the task, relative, sorted by their bytes. Links are not followed."""
    found: list[Path] = []
    pending = [root]
    while pending:
        for path in pending.pop().iterdir():
            if path.name in IGNORED_NAMES or path.suffix == ".pyc" or path.is_symlink():
                continue
            if path.is_dir():
                pending.append(path)
            elif path.is_file():
                found.append(path.relative_to(root))
    return tuple(sorted(found, key=lambda path: path.as_posix().encode("utf-8", "surrogateescape")))


def executable(path: Path) -> bool:
    """The only permission bit that counts: a checkout's umask must not change a digest."""
    return bool(path.stat().st_mode & stat.S_IXUSR)


def tree_digest(root: Path) -> str:
    """sha256 over path, executable bit and content of every file; 64 hex digits."""
    whole = hashlib.sha256(b"stayer.dev/tree/v1\n")
    for path in task_files(root):
        content = hashlib.sha256((root / path).read_bytes()).hexdigest()
        name = path.as_posix().encode("utf-8", "surrogateescape")
        mode = b"x" if executable(root / path) else b"-"
        whole.update(b"%d:%s %s %s\n" % (len(name), name, mode, content.encode()))
    return whole.hexdigest()


def task_digest(tree: str, image: str) -> str:
    """sha256 over the directory's digest and the image's: what a trial's evidence is bound to.

    Raises:
        ValueError: the image reference names no digest.
    """
    name, found, digest = image.rpartition(_IMAGE_DIGEST)
    if not found or not name or len(digest) != 64:
        raise ValueError(f"image {image!r} has no digest (accepted: name@sha256:<64 hex digits>)")
    return hashlib.sha256(f"stayer.dev/task/v1\n{tree}\n{digest}\n".encode()).hexdigest()
