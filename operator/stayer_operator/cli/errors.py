"""What a command says when it cannot do its work."""


class CliError(Exception):
    """One clear message for a person; the command ends with exit code 1, without a traceback."""
