"""Starts and ends processes, and ends only those that are surely ours.

A process id alone says little: it may have been given to another process since. So the record
holds the start time and the program too, and every process carries a mark in its environment
by which one that was started just before a kill, and never recorded, is found again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from local_cluster.settings import write_file

MARK_STATE = "STAYER_PROCESS_STATE"
MARK_NAME = "STAYER_PROCESS_NAME"
# Children inherit the marks, and containerd's outlive it: only a process that still runs the
# program that it was started with is the one that the name means.
MARK_PROGRAM = "STAYER_PROCESS_PROGRAM"
DELETED = " (deleted)"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which process this is, for as long as the machine runs."""

    pid: int
    start_ticks: int
    program: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """A started process, and a hash of what it was started with."""

    identity: Identity
    content: str


def parse_start_ticks(stat: str) -> int:
    """The start time in a /proc/PID/stat line; the name in it may hold spaces and brackets."""
    return int(stat.rpartition(")")[2].split()[19])


def parse_process_state(stat: str) -> str:
    """The one-letter state in a /proc/PID/stat line; Z is dead and not yet buried."""
    return stat.rpartition(")")[2].split()[0]


def parse_environ(content: bytes) -> dict[str, str]:
    """The variables in /proc/PID/environ."""
    pairs = (item.partition("=") for item in content.decode("utf-8", "replace").split("\0"))
    return {name: value for name, _, value in pairs if name}


def identify(pid: int) -> Identity | None:
    """The living process with this id; None if there is none, or only its remains."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        program = str(Path(f"/proc/{pid}/exe").readlink())
    except (OSError, ValueError):
        return None
    if parse_process_state(stat) in "ZX":
        return None
    # A program that was rebuilt since it was started is still the same process.
    return Identity(
        pid=pid, start_ticks=parse_start_ticks(stat), program=program.removesuffix(DELETED)
    )


def is_alive(identity: Identity) -> bool:
    """Whether exactly this process lives: same id, start time and program."""
    return identify(identity.pid) == identity


class ProcessTable:
    """The processes of one state directory."""

    def __init__(self, state: Path, records: Path) -> None:
        self._state = state
        self._records = records

    def find(self, name: str) -> Record | None:
        """The living process of this name, by its record or else by its mark."""
        path = self._path(name)
        if path.exists():
            stored = json.loads(path.read_text())
            record = Record(identity=Identity(**stored["identity"]), content=stored["content"])
            if is_alive(record.identity):
                return record
        for identity, mark in self._marked():
            if mark == name:
                # Started by a command that was killed before it wrote the record; with what
                # is not known, so it differs from every content.
                return self._remember(name, Record(identity=identity, content="unknown"))
        return None

    def start(
        self, name: str, command: Sequence[str], content: str, log: Path, env: Mapping[str, str]
    ) -> Record:
        """Start a process in a session of its own, its output appended to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        program = os.path.realpath(command[0])
        marks = {MARK_STATE: str(self._state), MARK_NAME: name, MARK_PROGRAM: program}
        with log.open("ab") as stream:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={**env, **marks},
                start_new_session=True,
            )
        # Nobody waits for it: it outlives us, and identify() counts its remains as dead.
        child.returncode = 0
        # Popen returns after exec, so the program is the right one already.
        identity = identify(child.pid) or Identity(pid=child.pid, start_ticks=0, program="")
        return self._remember(name, Record(identity=identity, content=content))

    def stop(self, name: str, patience: float, *, kill: bool = False) -> bool:
        """End the process and wait until it is gone; False if none was running."""
        record = self.find(name)
        if record is not None:
            end_processes([record.identity], 0 if kill else patience)
        self._path(name).unlink(missing_ok=True)
        return record is not None

    def stray(self) -> list[Identity]:
        """Living processes that carry our mark, recorded or not: shims, for one, inherit it."""
        return [identity for identity, _ in self._marked()]

    def _marked(self) -> Iterator[tuple[Identity, str]]:
        """Every living process that carries our mark, with its name; children have none."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environ = parse_environ((entry / "environ").read_bytes())
            except OSError:
                continue
            ours = environ.get(MARK_STATE) == str(self._state)
            identity = identify(int(entry.name)) if ours else None
            if identity is not None and identity.pid != os.getpid():
                is_itself = environ.get(MARK_PROGRAM) == identity.program
                yield identity, environ.get(MARK_NAME, "") if is_itself else ""

    def _path(self, name: str) -> Path:
        return self._records / f"{name}.json"

    def _remember(self, name: str, record: Record) -> Record:
        write_file(self._path(name), json.dumps(asdict(record)) + "\n")
        return record


def end_processes(identities: Sequence[Identity], patience: float) -> None:
    """Ask processes to end, kill those that have not after `patience` seconds, wait for all."""
    if patience > 0:
        _send(identities, signal.SIGTERM)
        _wait_until_gone(identities, patience)
    _send(identities, signal.SIGKILL)
    _wait_until_gone(identities, 10)


def _send(identities: Sequence[Identity], number: signal.Signals) -> None:
    for identity in identities:
        try:
            # The descriptor pins the process: its id cannot be given away between the check
            # and the signal.
            descriptor = os.pidfd_open(identity.pid)
        except OSError:
            continue
        try:
            if is_alive(identity):
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(descriptor)


def _wait_until_gone(identities: Sequence[Identity], patience: float) -> None:
    deadline = time.monotonic() + patience
    while any(map(is_alive, identities)) and time.monotonic() < deadline:
        time.sleep(0.05)
