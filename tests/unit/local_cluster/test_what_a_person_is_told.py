"""Progress and failures are told in words that help."""

import io
import multiprocessing
import threading
from pathlib import Path

import pytest

from local_cluster import cli
from local_cluster.console import Console, spell_duration
from local_cluster.errors import LocalClusterError, last_lines
from local_cluster.locks import exclusive
from local_cluster.settings import Choices, Places


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


class WatchedStream(io.StringIO):
    """A stream that knows when a word was written."""

    def __init__(self, word: str, *, terminal: bool) -> None:
        super().__init__()
        self.word = word
        self.seen = threading.Event()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.word in text:
            self.seen.set()
        return written


@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_step_says_that_it_still_works_and_where_its_log_is(terminal: bool) -> None:
    stream = WatchedStream("still", terminal=terminal)

    with Console(stream, reminder_seconds=0.01).step("building etcd", 480, Path("/logs/etcd.log")):
        assert stream.seen.wait(10)

    said = stream.getvalue()
    assert "building etcd: still at work, 0 s of usually 8 min; log: /logs/etcd.log\n" in said
    assert said.endswith("building etcd: done in 0 s\n")


def test_steps_one_after_the_other_are_both_spoken_of() -> None:
    stream = WatchedStream("second: still", terminal=False)
    console = Console(stream, reminder_seconds=0.01)

    with console.step("first"):
        pass
    with console.step("second"):
        assert stream.seen.wait(10)


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


def test_until_the_first_up_has_built_its_programs_the_cluster_is_not_up_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STAYER_KUBECONFIG", raising=False)
    state = tmp_path / "state"
    none_at_all = cli.main(["--state", str(state), "status"])
    capsys.readouterr()
    # As `up` does before it builds.
    Places(state, tmp_path).save_choices(Choices(kubernetes_version="1.37.2", registry_port=5999))

    code = cli.main(["--state", str(state), "status"])

    said = capsys.readouterr()
    assert (code, said.out) == (none_at_all, "")
    assert said.err.startswith("FAILED: the cluster is not up yet\n")
    assert "run `cluster up`" in said.err
    assert "Errno" not in said.err


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
