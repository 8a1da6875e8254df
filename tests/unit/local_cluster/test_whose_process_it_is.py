"""Only processes that are surely ours are ended."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from local_cluster.processes import (
    Identity,
    ProcessTable,
    Record,
    end_processes,
    identify,
    is_alive,
    parse_process_state,
    parse_start_ticks,
)

SLEEP = ["/bin/sleep", "60"]


@contextmanager
def sleeper(env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP, env={**os.environ, **(env or {})}) as process:
        try:
            yield process
        finally:
            process.kill()


def make_table(tmp_path: Path) -> ProcessTable:
    return ProcessTable(tmp_path / "state", tmp_path / "processes")


def start(table: ProcessTable, tmp_path: Path, name: str = "sleeper") -> Record:
    return table.start(name, SLEEP, "content", tmp_path / "log", dict(os.environ))


def forge(tmp_path: Path, identity: Identity) -> None:
    record = Record(identity=identity, content="content")
    path = tmp_path / "processes" / "sleeper.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(asdict(record)))


def test_the_start_time_is_found_behind_a_name_with_spaces_and_brackets() -> None:
    stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1"

    assert parse_start_ticks(stat) == 4242
    assert parse_process_state(stat) == "S"


def test_a_living_process_is_itself() -> None:
    with sleeper() as process:
        identity = identify(process.pid)

        assert identity is not None
        assert is_alive(identity)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"start_ticks": 1}, id="the id was given to a later process"),
        pytest.param({"program": "/usr/bin/other"}, id="the process runs another program"),
    ],
)
def test_a_process_that_only_shares_the_id_is_left_alone(
    tmp_path: Path, change: dict[str, int | str]
) -> None:
    with sleeper() as process:
        identity = identify(process.pid)
        assert identity is not None
        forge(tmp_path, replace(identity, **change))  # type: ignore[arg-type]

        stopped = make_table(tmp_path).stop("sleeper", 1)

        assert stopped is False
        assert process.poll() is None


def test_a_dead_process_that_nobody_has_buried_does_not_live() -> None:
    process = subprocess.Popen(["true"])
    deadline = time.monotonic() + 5
    while identify(process.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)

    assert identify(process.pid) is None
    process.wait()


def test_a_started_process_is_found_and_ended(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    record = start(table, tmp_path)

    assert table.find("sleeper") == record
    assert table.stop("sleeper", 5) is True
    assert not is_alive(record.identity)
    assert table.find("sleeper") is None


def test_one_that_was_started_just_before_a_kill_is_found_by_its_mark(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    record = start(table, tmp_path)
    (tmp_path / "processes" / "sleeper.json").unlink()

    found = table.find("sleeper")

    assert found is not None
    assert found.identity == record.identity
    assert found.content != record.content
    table.stop("sleeper", 5)


def test_a_child_that_inherited_the_mark_is_stray_but_not_taken_for_its_parent(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path)
    script = "sleep 60 & echo ready; wait"
    table.start("parent", ["/bin/sh", "-c", script], "", tmp_path / "log", dict(os.environ))
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.01)

    table.stop("parent", 0)

    assert table.find("parent") is None
    [child] = table.stray()
    assert child.program.endswith("sleep")
    end_processes([child], 1)


def test_the_mark_of_another_state_directory_is_not_ours(tmp_path: Path) -> None:
    other = ProcessTable(tmp_path / "other", tmp_path / "other-processes")
    start(other, tmp_path)

    assert make_table(tmp_path).find("sleeper") is None
    assert make_table(tmp_path).stray() == []
    other.stop("sleeper", 5)


def test_what_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    stubborn = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
    record = table.start("stubborn", stubborn, "", tmp_path / "log", dict(os.environ))
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.01)

    table.stop("stubborn", 0.3)

    assert not is_alive(record.identity)
