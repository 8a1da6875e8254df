"""Terminal text of any runner: pytest first, then the public shell runner, then the rest."""

import re
from collections.abc import Callable, Iterator

from stayer_evaluator.adjudication.parsers.parsed import Parsed, plausible, worst
from stayer_evaluator.adjudication.parsers.pytest_text import banner_counts, parse_pytest_text
from stayer_evaluator.adjudication.parsers.spec import passed_count, spec_claims, tap_claims
from stayer_evaluator.adjudication.parsers.text import plain
from stayer_evaluator.records.outcomes import CaseStatus

#: Id of the public harness's pseudo-case for a whole pytest session.
TAIL_CASE = "__loopsbench_pytest_session_tail__"
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
_EXIT = re.compile(r"^__EXIT__(\d+)$")

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


def session_tail(log: bytes) -> CaseStatus | None:
    """Outcome that a public log's last two lines state: pytest's banner, then `__EXIT__<code>`.

    Null when they are not there. Passed: code 0 and neither failures nor errors counted.
    """
    lines = [line.strip() for line in plain(log).split("\n") if line.strip()]
    if len(lines) < 2 or not (code := _EXIT.match(lines[-1])):
        return None
    counts = banner_counts(lines[-2:-1])
    if not counts:
        return None
    bad = counts.keys() & {"failed", "error", "errors"}
    return CaseStatus.FAILED if bad or int(code.group(1)) else CaseStatus.PASSED


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
