"""Transcript parsers: what a harness's own account says of a round.

A transcript comes out of an untrusted container: it is a claim and decides nothing but how the
round's failure is called and what is shown beside the counted numbers.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from stayer_evaluator.harnesses.transcripts import none
from stayer_evaluator.harnesses.transcripts.account import Account

TranscriptParser = Callable[[bytes], Account]
"""Total: whatever the bytes are, an account comes back."""

PARSERS: Mapping[str, TranscriptParser] = MappingProxyType({"none": none.parse})


class UnknownParser(KeyError):  # noqa: N818 (reads as what happened)
    """A description names a parser that is not there."""


def parser(name: str) -> TranscriptParser:
    """The parser of that name. Raises UnknownParser."""
    try:
        return PARSERS[name]
    except KeyError:
        raise UnknownParser(name) from None
