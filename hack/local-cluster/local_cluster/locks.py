"""One command at a time for each directory; a killed command leaves no lock behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file; while another holds it, say so once and wait.

    The kernel drops the lock with its last holder, so there is nothing to clean up after a kill.
    """
    descriptor = _acquire(path, on_wait)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(path: Path, on_wait: Callable[[str], None]) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not inherited by children (O_CLOEXEC is Python's default): daemons must not hold it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode().strip() or "unknown"
            on_wait(f"waiting for another cluster command (pid {holder}) to end: it holds {path}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # `down` removes the file: what we hold may not be what the next one opens.
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
        os.close(descriptor)
