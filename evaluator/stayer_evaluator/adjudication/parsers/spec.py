"""Indented reports of JavaScript runners: node's `spec` reporter, Jest and Mocha; and TAP.

A case's id is its path of names, `suite > case`. Node marks a suite's start with `▶` and its end
with a marked line of the same name; Jest prints a suite's name alone on a line above its cases.
"""

import re
from collections.abc import Iterator

from stayer_evaluator.records.outcomes import CaseStatus

_MARKS = {
    "✔": CaseStatus.PASSED,
    "✓": CaseStatus.PASSED,
    "✖": CaseStatus.FAILED,
    "✕": CaseStatus.FAILED,
    "✗": CaseStatus.FAILED,
    "﹣": CaseStatus.SKIPPED,
    "○": CaseStatus.SKIPPED,
}
_MARKED = re.compile(rf"^(\s*)([{''.join(_MARKS)}]) (.+?)$")
_OPENED = re.compile(r"^(\s*)▶ (.+?)$")
_DURATION = re.compile(r"\s*\(\d+(?:\.\d+)?\s?m?s\)(?:\s+#.*)?$")
_DIRECTIVE = re.compile(r"\s+# (SKIP|TODO)\b.*$", re.IGNORECASE)
_COUNTS = (
    re.compile(r"^(?:ℹ|#) pass (\d+)$"),  # node, spec and TAP
    re.compile(r"^Tests:\s+(?:.*?, )?(\d+) passed\b"),  # Jest
    re.compile(r"^\s+(\d+) passing\b"),  # Mocha
)
_FAILURES = re.compile(r"^✖ failing tests:\s*$")
_TAP = re.compile(r"^(\s*)(not ok|ok) \d+(?: - (.*))?$")
_SUBTEST = re.compile(r"^(\s*)# Subtest: (.*)$")


def spec_claims(text: str) -> Iterator[tuple[str, CaseStatus]]:
    """Cases of marked, indented lines. What node repeats under `failing tests` is left out."""
    suites: list[tuple[int, str]] = []
    for line in text.split("\n"):
        if _FAILURES.match(line):
            return
        if opened := _OPENED.match(line):
            indent, name = len(opened.group(1)), _bare(opened.group(2))
            while suites and suites[-1][0] >= indent:
                suites.pop()
            suites.append((indent, name))
        elif marked := _MARKED.match(line):
            indent, name = len(marked.group(1)), _bare(marked.group(3))
            while suites and suites[-1][0] > indent:
                suites.pop()
            if suites and suites[-1] == (indent, name):
                suites.pop()  # the end of a suite repeats its name
                continue
            while suites and suites[-1][0] >= indent:
                suites.pop()
            skipped = _DIRECTIVE.search(marked.group(3))
            status = CaseStatus.SKIPPED if skipped else _MARKS[marked.group(2)]
            yield " > ".join([*(suite for _, suite in suites), name]), status


def tap_claims(text: str) -> Iterator[tuple[str, CaseStatus]]:
    """Cases of a TAP stream as node prints it; a subtest that has children is no case itself."""
    path: list[tuple[int, str]] = []
    parents = set[str]()
    for line in text.split("\n"):
        if opened := _SUBTEST.match(line):
            indent = len(opened.group(1))
            path = [entry for entry in path if entry[0] < indent]
            parents.add(" > ".join(name for _, name in path))
            path.append((indent, _bare(opened.group(2))))
        elif point := _TAP.match(line):
            indent = len(point.group(1))
            raw = point.group(3) or ""
            above = [name for depth, name in path if depth < indent]
            name = " > ".join([*above, _bare(raw)])
            if not _bare(raw) or name in parents:
                continue
            status = CaseStatus.PASSED if point.group(2) == "ok" else CaseStatus.FAILED
            yield name, CaseStatus.SKIPPED if _DIRECTIVE.search(raw) else status


def passed_count(text: str) -> dict[str, int]:
    """What the runner's own last summary says of passed tests; empty without one."""
    for line in reversed(text.split("\n")):
        for pattern in _COUNTS:
            if found := pattern.match(line):
                return {"passed": int(found.group(1))}
    return {}


def _bare(name: str) -> str:
    return _DURATION.sub("", _DIRECTIVE.sub("", name)).strip()
