"""Runs other programs: with a log file, or for their output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from local_cluster.errors import LocalClusterError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run_logged(
    what: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    advice: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    contained: bool = False,
) -> None:
    """Run a program with its output in `log`; raise LocalClusterError naming `what` if it fails.

    The program is killed when we are. A `contained` one has its own mounts and process ids, so
    that nothing which it mounted or started outlives it however it ends.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    wrapper: list[str | Path] = ["setpriv", "--pdeathsig", "KILL"]
    if contained:
        wrapper += ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    with log.open("ab") as stream:
        stream.write(f"$ {' '.join(map(str, command))}\n".encode())
        stream.flush()
        code = subprocess.run(
            [*wrapper, *command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            check=False,
        ).returncode
    if code != 0:
        advice = advice or "mend what the log says and run the same command again"
        raise LocalClusterError(f"{what} (exit code {code})", advice=advice, log=log)


def read_output(command: Sequence[str | Path], *, stdin: str | None = None) -> str:
    """What a program prints; raise LocalClusterError with its complaint if it fails."""
    result = try_command(command, stdin=stdin)
    if result.returncode != 0:
        raise LocalClusterError(
            f"{' '.join(map(str, command))}: {result.stderr.strip() or result.returncode}"
        )
    return result.stdout


def try_command(
    command: Sequence[str | Path], *, stdin: str | None = None, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a short program and let the caller judge how it ended."""
    return subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
