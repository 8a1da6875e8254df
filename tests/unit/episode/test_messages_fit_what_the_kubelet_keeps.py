"""Termination messages are kept whole only below 4,096 bytes."""

from pathlib import Path

from stayer_evaluator.episode.sidecar import MESSAGE_BYTES, error_message, fitted, write_message
from stayer_evaluator.records.reports import TerminationMessage


def test_a_message_fits_whatever_it_lists() -> None:
    problems = tuple(f"unit {n}: " + "x" * 500 for n in range(40))
    message = TerminationMessage(kind="results", accepted=False, problems=problems)

    data = fitted(message)

    kept = TerminationMessage.from_bytes(data).problems
    assert len(data) <= MESSAGE_BYTES
    assert 0 < len(kept) < len(problems)
    assert kept[0].startswith("unit 0: ")


def test_a_message_fits_whatever_it_says() -> None:
    """One character may take twelve bytes of JSON."""
    data = fitted(error_message("RecorderFailed", "first \U0001f4a5" * 2000))

    said = TerminationMessage.from_bytes(data)
    assert MESSAGE_BYTES / 3 < len(data) <= MESSAGE_BYTES
    assert said.reason == "RecorderFailed"
    assert said.message.startswith("first")


def test_a_small_message_is_left_alone() -> None:
    message = TerminationMessage(kind="results", accepted=True)

    assert fitted(message) == message.to_bytes()


def test_a_message_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    write_message(tmp_path / "nowhere" / "log", error_message("RecorderFailed", "disk full"))
