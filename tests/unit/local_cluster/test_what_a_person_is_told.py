"""Progress and failures are told in words that help."""

import io
import multiprocessing
from pathlib import Path

import pytest

from local_cluster import cli
from local_cluster.console import Console, spell_duration
from local_cluster.errors import LocalClusterError, last_lines
from local_cluster.locks import exclusive


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min"), (90, "1 min 30 s"), (720, "12 min")],
)
def test_durations_are_spelled_as_people_say_them(seconds: float, words: str) -> None:
    assert spell_duration(seconds) == words


def test_a_step_says_what_it_does_and_how_long_that_usually_takes() -> None:
    stream = io.StringIO()

    with Console(stream).step("building runc", 60):
        pass

    first, last = stream.getvalue().splitlines()
    assert first == "building runc ... (usually 1 min)"
    assert last == "building runc: done in 0 s"


def test_a_failure_names_the_step_the_logs_end_and_what_to_do(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    error = LocalClusterError("building runc", advice="free some disk", log=log)

    lines = error.report().splitlines()

    assert lines[0] == "FAILED: building runc"
    assert lines[1] == f"Last lines of {log}:"
    assert lines[-2] == "  | line 999"
    assert lines[-1] == "What to do: free some disk"


def test_the_end_of_a_log_is_read_even_if_it_is_no_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff\xfe\nlast")

    assert last_lines(log, 1) == ["last"]


def test_a_failing_command_exits_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STAYER_KUBECONFIG", raising=False)

    code = cli.main(["--state", str(tmp_path / "none"), "env"])

    assert code == 1
    assert "run `cluster up`" in capsys.readouterr().err


def test_a_kubeconfig_that_is_no_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAYER_KUBECONFIG", str(tmp_path / "missing"))

    assert cli.main(["--state", str(tmp_path), "up"]) == 1
    assert str(tmp_path / "missing") in capsys.readouterr().err


def _hold(path: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with exclusive(path, print):
        ready.set()
        multiprocessing.Event().wait(0.5)


def test_a_second_command_waits_and_says_for_whom(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path / "lock", ready))
    holder.start()
    ready.wait(10)
    said: list[str] = []

    with exclusive(tmp_path / "lock", said.append):
        pass

    holder.join()
    assert len(said) == 1
    assert f"(pid {holder.pid})" in said[0]
