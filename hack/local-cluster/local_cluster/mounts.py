"""Mounts below a directory: found and taken away."""

from __future__ import annotations

import re
import time
from pathlib import Path

from local_cluster.commands import try_command


def parse_mounts_below(mountinfo: str, directory: Path) -> list[Path]:
    """Mount points in or at `directory`, last mounted first; a point may occur twice."""
    points: list[Path] = []
    for line in mountinfo.splitlines():
        # The kernel writes spaces and such as octal escapes.
        text = re.sub(r"\\(\d{3})", lambda match: chr(int(match.group(1), 8)), line.split()[4])
        point = Path(text)
        if point == directory or directory in point.parents:
            points.append(point)
    return points[::-1]


def unmount_below(directory: Path, patience: float = 15) -> list[Path]:
    """Unmount everything below a directory; return what would not go.

    Never detaches lazily while there is time: a volume that is still in use must not look
    unmounted when its files are removed.
    """
    deadline = time.monotonic() + patience
    while True:
        points = parse_mounts_below(Path("/proc/self/mountinfo").read_text(), directory)
        if not points:
            return []
        late = time.monotonic() > deadline
        for point in points:
            try_command(["umount", *(["--lazy"] if late else []), point])
        if late:
            return parse_mounts_below(Path("/proc/self/mountinfo").read_text(), directory)
        time.sleep(0.1)
