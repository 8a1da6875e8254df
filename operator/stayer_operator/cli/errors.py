"""What a command says when it cannot do its work."""

from typing import ClassVar


class CliError(Exception):
    """One clear message for a person; the command ends with `exit_code`, without a traceback."""

    exit_code: ClassVar[int] = 1


class TimedOutError(CliError):
    """What was awaited did not come in time; whoever calls may wait again."""

    exit_code = 2
