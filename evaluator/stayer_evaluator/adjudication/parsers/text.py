"""Normalising logs before they are read."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_WIDE_GAP = re.compile(r"(?<=\S) {4,}(?=\S)")


def plain(log: bytes) -> str:
    """Text without terminal colours; carriage returns end lines. Bad UTF-8 is replaced."""
    text = _ANSI.sub("", log.decode("utf-8", "replace"))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unwrapped(text: str) -> str:
    """Wide gaps inside a line end it: screens print two results side by side that way."""
    return _WIDE_GAP.sub("\n", text)


def public_id(node: str) -> str:
    """A pytest id as the public harness writes it: relative to the `tests` folder."""
    path, colons, rest = node.partition("::")
    while path.startswith(("./", "../")):
        path = path.split("/", 1)[1]
    _, found, after = path.rpartition("/tests/")
    path = after if found else path.removeprefix("tests/")
    return path + colons + rest
