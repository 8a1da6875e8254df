"""pytest's verbose text output (7.2 to 9): progress lines, short summary, closing banner."""

import re
from collections.abc import Callable, Iterator

from stayer_evaluator.adjudication.parsers.parsed import Parsed, plausible, worst
from stayer_evaluator.adjudication.parsers.text import plain, public_id, unwrapped
from stayer_evaluator.records.outcomes import CaseStatus

STATUSES = {
    "PASSED": CaseStatus.PASSED,
    "FAILED": CaseStatus.FAILED,
    "ERROR": CaseStatus.ERROR,
    "SKIPPED": CaseStatus.SKIPPED,
}
_STATUS = "|".join(STATUSES)
_PROGRESS = re.compile(rf"^(\S.*?::.*?) ({_STATUS})(?: \(.*\)?)?(?:\s*\[\s*\d+%\])?$")
_SUMMARY = re.compile(rf"^({_STATUS}) (\S.*?::.*?)(?: - .*)?$")
_COLLECTION = re.compile(r"^ERROR ([^\s:][^:]*?\.py)(?: - .*)?$")
_BANNER = re.compile(r"^=+ (?P<counts>(?:\d+ [a-z]+(?:, )?)+|no tests ran)\b.*=+$")
_COUNT = re.compile(r"(\d+) ([a-z]+)")


def parse_pytest(log: bytes, identify: Callable[[str], str] = public_id) -> Parsed:
    """Cases of a pytest run.

    Args:
        log: what it printed with at least `-v`.
        identify: printed node id → case id; the public harness's normalisation by default.
    """
    return parse_pytest_text(plain(log), identify)


def parse_pytest_text(text: str, identify: Callable[[str], str] = public_id) -> Parsed:
    """As `parse_pytest`, of normalised text."""
    lines = [line.rstrip() for line in unwrapped(text).split("\n")]
    cases = worst((identify(node), status) for node, status in _claims(lines))
    if any(name.startswith("test_unit_runner.py::") for name in cases):
        # A unit runner repeats its inner runs' output; those are not cases of their own.
        cases = {n: s for n, s in cases.items() if not n.startswith(_INNER)}
    last = next((line for line in reversed(lines) if line), "")
    counts = _banner_counts(lines)
    return Parsed(
        cases=cases,
        complete=_BANNER.match(last) is not None and plausible(cases, counts),
        summary=counts,
        collection_errors=tuple(
            dict.fromkeys(match.group(1) for line in lines if (match := _COLLECTION.match(line)))
        ),
    )


_INNER = ("test/units/", "test/integration/")


def _banner_counts(lines: list[str]) -> dict[str, int]:
    """Counts of the last closing banner: `2 failed, 3 passed` → {failed: 2, passed: 3}."""
    for line in reversed(lines):
        match = _BANNER.match(line)
        if match:
            return {word: int(count) for count, word in _COUNT.findall(match.group("counts"))}
    return {}


def _claims(lines: list[str]) -> Iterator[tuple[str, CaseStatus]]:
    for line in lines:
        if match := _PROGRESS.match(line):
            yield match.group(1), STATUSES[match.group(2)]
        elif match := _SUMMARY.match(line):
            yield match.group(2), STATUSES[match.group(1)]
