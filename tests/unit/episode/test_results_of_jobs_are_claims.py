"""The sidecar's half of the job protocol, with a runner that does what it likes."""

import asyncio
import json
import os
import stat

import pytest

from stayer_evaluator.episode.jobs import JobClient, RunnerLost
from stayer_evaluator.records.jobs import Job, JobResult

JOB = Job(id="j1", argv=("true",), timeout_seconds=0.05)


@pytest.fixture
def pod(tmp_path):
    """Both directories, and a FIFO that somebody reads."""
    for name in ("jobs", "out"):
        (tmp_path / name).mkdir()
    client = JobClient(tmp_path / "jobs", tmp_path / "out", patience=0.3)
    client.prepare()
    reader = os.open(tmp_path / "jobs/fifo", os.O_RDWR | os.O_NONBLOCK)
    yield tmp_path, client, reader
    os.close(reader)


def result(**fields: object) -> bytes:
    whole = {"id": "j1", "kind": "exec", "started": 1, "ended": 2, "exit_code": 0, **fields}
    return json.dumps(whole).encode()


def test_a_job_is_announced_after_its_files_are_there(pod):
    root, client, reader = pod
    (root / "out/j1.json").write_bytes(result())

    client.write(JOB, b"input")
    written = Job.from_bytes((root / "jobs/j1.json").read_bytes())
    found = asyncio.run(client.finish(written))

    assert os.read(reader, 100) == b"j1\n"
    assert written == JOB.model_copy(update={"stdin": "j1.stdin"})
    assert found == JobResult.from_bytes(result())
    assert [path.name for path in (root / "jobs").iterdir()] == ["fifo"]


def test_the_job_directory_is_closed_and_prepared_once(pod):
    root, client, _ = pod
    before = (root / "jobs/fifo").stat().st_ino

    client.prepare()

    assert stat.S_IMODE((root / "jobs").stat().st_mode) == 0o700
    assert (root / "jobs/fifo").stat().st_ino == before


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        result(id="j2"),
        result(kind="dance"),
        result(extra=1),
        result(error="x" * 100_000),
        b"[" * 10_000,
    ],
    ids=["empty", "null", "another's", "bad kind", "unknown field", "too large", "deep"],
)
def test_a_result_that_is_none_is_a_lost_runner(pod, data):
    root, client, _ = pod
    (root / "out/j1.json").write_bytes(data)

    with pytest.raises(RunnerLost, match="j1"):
        asyncio.run(client.run(JOB))


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_what_is_no_file_is_no_result(pod, kind):
    root, client, _ = pod
    path = root / "out/j1.json"
    if kind == "link":
        (root / "secret").write_bytes(result())
        path.symlink_to(root / "secret")
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)

    with pytest.raises(RunnerLost, match="no result after"):
        asyncio.run(client.run(JOB))


def test_logs_are_bounded_and_no_link_is_followed(pod):
    root, client, _ = pod
    (root / "out/a.log").write_bytes(b"x" * 1000)
    (root / "out/b.log").symlink_to(root / "out/a.log")

    assert client.log("a", 10) == b"x" * 10
    assert client.log("b", 10) == client.log("none", 10) == b""


def test_a_runner_that_never_appears_is_lost(tmp_path):
    (tmp_path / "jobs").mkdir()
    client = JobClient(tmp_path / "jobs", tmp_path / "out")
    client.prepare()

    with pytest.raises(RunnerLost, match="no runner reads"):
        asyncio.run(client.run(JOB, start_patience=0.1))


def test_a_full_fifo_is_waited_for(pod):
    _, client, reader = pod
    filler = os.open(f"/proc/self/fd/{reader}", os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(filler, b"x" * 4096)
    os.close(filler)

    with pytest.raises(RunnerLost, match="no runner reads"):
        asyncio.run(client.run(JOB))


def test_quit_does_not_mind_a_runner_that_is_gone(tmp_path):
    (tmp_path / "jobs").mkdir()
    client = JobClient(tmp_path / "jobs", tmp_path / "out")
    client.prepare()

    asyncio.run(client.quit("q", 0))
