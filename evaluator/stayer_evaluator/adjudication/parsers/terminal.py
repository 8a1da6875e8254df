"""Terminal text of any runner: pytest first, then the public shell runner, then the rest."""

import re
from collections.abc import Callable, Iterator

from stayer_evaluator.adjudication.parsers.parsed import Parsed, plausible, worst
from stayer_evaluator.adjudication.parsers.pytest_text import parse_pytest_text
from stayer_evaluator.adjudication.parsers.spec import passed_count, spec_claims, tap_claims
from stayer_evaluator.adjudication.parsers.text import plain
from stayer_evaluator.records.outcomes import CaseStatus

_WORDS = {
    "passed": CaseStatus.PASSED,
    "failed": CaseStatus.FAILED,
    "error": CaseStatus.ERROR,
    "skipped": CaseStatus.SKIPPED,
    "通过": CaseStatus.PASSED,
    "失败": CaseStatus.FAILED,
}
_SHELL_START = re.compile(r"^--- (\S.*?) ---$")
_SHELL_CASE = re.compile(rf"^\[({'|'.join(_WORDS)})\] (\S.*?)$", re.IGNORECASE)
_GO = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)(?: \(.*\))?$")
_GO_WORDS = {
    "PASS": CaseStatus.PASSED,
    "FAIL": CaseStatus.FAILED,
    "SKIP": CaseStatus.SKIPPED,
}

Claims = Iterator[tuple[str, CaseStatus]]


def parse_terminal(log: bytes) -> Parsed:
    """Cases of a script's log: those of pytest and of the shell runner together, else those of the
    first other runner that printed any.
    """
    text = plain(log)
    pytest = parse_pytest_text(text)
    claims = [*pytest.cases.items(), *_shell_claims(text)]
    others: tuple[Callable[[str], Claims], ...] = (_go_claims, tap_claims, spec_claims)
    for reader in others:
        if claims:
            break
        claims = list(reader(text))
    cases = worst(claims)
    summary = pytest.summary or passed_count(text)
    return Parsed(cases=cases, summary=summary, complete=plausible(cases, summary))


def _shell_claims(text: str) -> Claims:
    """`--- name ---` starts a test, `[passed] name` states its end; one that never ends failed."""
    started: dict[str, CaseStatus] = {}
    ended: list[tuple[str, CaseStatus]] = []
    for line in text.split("\n"):
        if start := _SHELL_START.match(line.strip()):
            started[start.group(1)] = CaseStatus.ERROR
        elif case := _SHELL_CASE.match(line.strip()):
            ended.append((case.group(2), _WORDS[case.group(1).lower()]))
    if not ended:
        return
    names = {name for name, _ in ended}
    yield from ended
    yield from ((name, status) for name, status in started.items() if name not in names)


def _go_claims(text: str) -> Claims:
    for line in text.split("\n"):
        if match := _GO.match(line):
            yield match.group(2), _GO_WORDS[match.group(1)]
