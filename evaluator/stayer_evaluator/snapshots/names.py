"""Paths inside manifests: raw bytes of a file system written as JSON text, and back."""

import base64
import binascii

PREFIX = "b64:"


class UnsafePath(ValueError):  # noqa: N818 (reads as what happened)
    """A path of a manifest that no walk could have produced."""


def encode(raw: bytes) -> str:
    """The text of a path or link target: UTF-8 as it is, anything else `b64:` + base64."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return PREFIX + base64.b64encode(raw).decode("ascii")
    return PREFIX + base64.b64encode(raw).decode("ascii") if text.startswith(PREFIX) else text


def decode(text: str) -> bytes:
    """The bytes of `encode`. Raises UnsafePath for text that `encode` does not write."""
    if not text.startswith(PREFIX):
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UnsafePath(f"{text!r} is not valid UTF-8") from error
    try:
        raw = base64.b64decode(text[len(PREFIX) :], validate=True)
    except binascii.Error as error:
        raise UnsafePath(f"{text!r} is not valid base64") from error
    if encode(raw) != text:
        raise UnsafePath(f"{text!r} is not written canonically")
    return raw


def decode_path(text: str) -> bytes:
    """`decode` for a path of a tree: relative, without empty, `.` or `..` parts or NUL bytes."""
    raw = decode(text)
    if b"\0" in raw or any(part in (b"", b".", b"..") for part in raw.split(b"/")):
        raise UnsafePath(f"{text!r} is not a plain relative path")
    return raw


def escapes(path: bytes, target: bytes) -> bool:
    """Whether a link at `path` with this target leads out of the tree, judged by text alone."""
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    for part in target.split(b"/"):
        depth += -1 if part == b".." else part not in (b"", b".")
        if depth < 0:
            return True
    return False
