"""The three archives of a task: `public`, `suite` and `gold`, as deterministic tar.zst bytes.

Equal trees give equal bytes (sorted names, no times, owners or umask), so that pushing twice
creates nothing twice. Extraction is our own: only plain files and folders under the target are
ever made, through directory descriptors, with caps; links and specials are refused (the standard
library's filters have been escaped before).
"""

import contextlib
import io
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

import zstandard

from stayer_evaluator.tasks.digest import executable, task_files

Part = Literal["public", "suite", "gold"]
PARTS: tuple[Part, ...] = ("public", "suite", "gold")
MAX_BYTES = 1024**3
MAX_FILES = 100_000
_SUITE_SCRIPT = "run-tests.sh"
_GOLD_FILES = {
    "gold-patch.diff", "gold_patch.diff", "patch_order.json", "solution.sh", "solution.yaml",
    "slug_diff_map.json",
}  # fmt: skip


class BadBundle(Exception):  # noqa: N818 (reads as what happened)
    """An archive that is not one of ours: bad name, kind, size or compression."""


def part_of(path: PurePosixPath) -> Part | None:
    """Which archive a file of the task belongs to; null: none (base, Dockerfile, ...).

    The suite's own script is both a test file and what the suite is run by; requirements and
    task.yaml are public, everything that shows a solution is gold.
    """
    top = path.parts[0]
    if top == "requirements" or str(path) == "task.yaml":
        return "public"
    if top == "tests" or str(path) == _SUITE_SCRIPT:
        return "suite"
    if top == "gold_patches" or str(path) in _GOLD_FILES:
        return "gold"
    return None


def pack_part(root: Path, part: Part) -> bytes:
    """One archive of the task directory; an empty archive when nothing belongs to it."""
    paths = [path for path in task_files(root) if part_of(PurePosixPath(path.as_posix())) == part]
    return pack_files(
        (path.as_posix(), (root / path).read_bytes(), executable(root / path)) for path in paths
    )


def pack_files(files: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """Deterministic archive of (name, content, executable), in the order given."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, runnable in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if runnable else 0o644
            archive.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor(level=9, threads=0).compress(buffer.getvalue())


def read_bundle(data: bytes, *, max_bytes: int = MAX_BYTES) -> dict[str, tuple[bytes, bool]]:
    """Name → (content, executable) of an archive.

    Raises:
        BadBundle: bad compression or tar, an unsafe or doubled name, a member that is neither file
            nor folder, or more than `max_bytes` or 100,000 members.
    """
    files: dict[str, tuple[bytes, bool]] = {}
    try:
        plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read(max_bytes + 1)
        if len(plain) > max_bytes:
            raise BadBundle(f"more than {max_bytes} bytes")
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for count, member in enumerate(archive):
                if count >= MAX_FILES:
                    raise BadBundle(f"more than {MAX_FILES} members")
                if member.isdir():
                    continue
                if not member.isreg():
                    raise BadBundle(f"{member.name!r} is neither a file nor a folder")
                name = _safe_name(member.name)
                if name in files:
                    raise BadBundle(f"{name!r} occurs twice")
                content = archive.extractfile(member)
                assert content is not None
                files[name] = (content.read(), bool(member.mode & stat.S_IXUSR))
    except (zstandard.ZstdError, tarfile.TarError) as error:
        raise BadBundle(f"no readable archive: {error}") from error
    return files


def extract(data: bytes, target: Path) -> tuple[str, ...]:
    """Write an archive's files below the existing folder `target`; returns their names.

    Raises:
        BadBundle: see `read_bundle`.
        OSError: a file is already there, or a folder on the way is a link.
    """
    return write_files(read_bundle(data), target)


def extract_suite(data: bytes, target: Path) -> tuple[str, ...]:
    """The suite as it lies in /tests: `tests/x` becomes `x`; run-tests.sh lies beside them."""
    packed = read_bundle(data)
    files = {name.removeprefix("tests/"): entry for name, entry in packed.items()}
    if _SUITE_SCRIPT in packed:  # not one of the same name inside tests/
        files[_SUITE_SCRIPT] = packed[_SUITE_SCRIPT]
    return write_files(files, target)


def write_files(files: Mapping[str, tuple[bytes, bool]], target: Path) -> tuple[str, ...]:
    """Create files below `target` without following any link; folders 0755, files 0644/0755."""
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name, (content, runnable) in files.items():
            _write(root, PurePosixPath(name), content, 0o755 if runnable else 0o644)
    finally:
        os.close(root)
    return tuple(files)


def _write(root: int, path: PurePosixPath, content: bytes, mode: int) -> None:
    folder = os.dup(root)
    try:
        for part in path.parts[:-1]:
            inner = _enter(folder, part)
            os.close(folder)
            folder = inner
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path.name, flags, 0o600, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
    finally:
        os.close(folder)


def _enter(folder: int, name: str) -> int:
    """The folder of that name below `folder`, made if missing."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    os.fchmod(inner, 0o755)  # the umask must not decide
    return inner


def _safe_name(name: str) -> str:
    path = PurePosixPath(name)
    bad = path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name
    if bad or str(path) != name.removeprefix("./"):
        raise BadBundle(f"the name {name!r} leaves the archive")
    return str(path)
