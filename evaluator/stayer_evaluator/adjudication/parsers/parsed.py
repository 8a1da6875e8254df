"""What a parser finds in a log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stayer_evaluator.records.outcomes import CaseStatus

#: From harmless to harmful: of several claims about one case the worst counts.
_SEVERITY = (
    CaseStatus.PASSED, CaseStatus.SKIPPED, CaseStatus.MISSING, CaseStatus.FAILED, CaseStatus.ERROR,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Cases by id; `complete`: the runner's own closing line was there and is the log's end;
    `summary`: counts from a banner where no cases are printed.
    """

    cases: Mapping[str, CaseStatus] = field(default_factory=dict)
    complete: bool = True
    summary: Mapping[str, int] = field(default_factory=dict)
    collection_errors: tuple[str, ...] = ()


def worst(claims: Iterable[tuple[str, CaseStatus]]) -> dict[str, CaseStatus]:
    """One status per id, the worst that was claimed.

    A passed case whose teardown fails is printed as passed and then as error; and a line forged by
    a test can only ever make its own case look worse.
    """
    cases: dict[str, CaseStatus] = {}
    for name, status in claims:
        seen = cases.get(name)
        if seen is None or _SEVERITY.index(status) > _SEVERITY.index(seen):
            cases[name] = status
    return cases


def plausible(cases: Mapping[str, CaseStatus], summary: Mapping[str, int]) -> bool:
    """No more cases passed than the runner counted itself, where it counts.

    Lines that a test prints can look like results; the runner's count, printed last, does not
    include them.
    """
    passed = sum(status == CaseStatus.PASSED for status in cases.values())
    return not summary or passed <= summary.get("passed", 0)
