"""What can go wrong, told so that a person knows what to do next."""

from __future__ import annotations

from pathlib import Path

LOG_TAIL_LINES = 15
NOT_UP = "the cluster is not up yet"
NOT_UP_ADVICE = "run `cluster up`; if one is at work, it says how far it is"


class LocalClusterError(Exception):
    """A failure that ends the command: what failed, where its log is, what to do.

    Attributes:
        what: the step or state that failed, one sentence.
        advice: what the person can do about it.
        log: the file whose last lines explain the failure, if there is one.
    """

    def __init__(self, what: str, *, advice: str = "", log: Path | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice
        self.log = log

    def report(self) -> str:
        """The whole message for a terminal, the log's last lines included."""
        lines = [f"FAILED: {self.what}"]
        if self.log is not None and self.log.exists():
            lines.append(f"Last lines of {self.log}:")
            lines.extend(f"  | {line}" for line in last_lines(self.log, LOG_TAIL_LINES))
        if self.advice:
            lines.append(f"What to do: {self.advice}")
        return "\n".join(lines)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a text file that may be large; undecodable bytes are replaced."""
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(0, stream.tell() - 200 * count - 4096))
        text = stream.read().decode("utf-8", "replace")
    return text.splitlines()[-count:]
