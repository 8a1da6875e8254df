"""Which tests does each unit have? Found by running the suite on the gold tree (§10.2, §10.3)."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stayer_evaluator.adjudication.bench import Bench
from stayer_evaluator.adjudication.results import Run, environment_fault, judge
from stayer_evaluator.adjudication.suites.naming import named_cases
from stayer_evaluator.adjudication.suites.pytest_suite import PytestSuite
from stayer_evaluator.adjudication.suites.suite import Finder, Target
from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.task import InventoryUnit, UnitRecord
from stayer_evaluator.tasks.model import SUITE_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A unit's expected cases, and why gold does not pass them (empty: it does)."""

    unit: InventoryUnit
    problem: str = ""


NOTHING = InventoryUnit(cases=(), selectable=False, finder="none")


async def discover(bench: Bench, units: Sequence[UnitRecord]) -> dict[str, Found]:
    """Find and judge every unit's tests on the tree that lies on the bench.

    Order of finding: the unit's own folder, a unit runner, ids that name the unit; what cannot be
    selected is run whole, once, and masked. Raises BenchStopped, RunnerLost.
    """
    tested = [unit.id for unit in units if unit.has_tests]
    found: dict[str, Found] = {u.id: Found(unit=NOTHING) for u in units if not u.has_tests}
    single = {u: await _alone(bench, u) for u in tested if u != SUITE_UNIT}
    if not isinstance(bench.suite, PytestSuite) and not await _selects(bench, single):
        single = dict.fromkeys(single)
    found |= {unit: result for unit, result in single.items() if result is not None}
    masked = [unit for unit in tested if unit not in found]
    if masked:
        found |= _masked(masked, await bench.run(Target(), bench.test_seconds))
    return found


async def _alone(bench: Bench, unit: str) -> Found | None:
    """The unit run by itself, by the first finder that yields cases."""
    for finder in _finders(bench, unit):
        run = await bench.run(Target(unit=unit, finder=finder), bench.test_seconds)
        if run.parsed.cases or run.job.timed_out or environment_fault(run.job):
            return _judged(unit, finder, run, tuple(run.parsed.cases), selectable=True)
    return None


def _finders(bench: Bench, unit: str) -> tuple[Finder, ...]:
    files = bench.suite.files
    if not isinstance(bench.suite, PytestSuite):
        return ("folder",) if unit in files.folders else ("unit_runner",)
    folder = unit in files.pytest_folders or unit in files.selected
    finders: list[Finder] = ["folder"] if folder else []
    return (*finders, "unit_runner") if files.unit_runner else tuple(finders)


async def _selects(bench: Bench, single: Mapping[str, Found | None]) -> bool:
    """A script that runs everything whatever it is told gives every unit the same cases."""
    cases = [frozenset(f.unit.cases) for f in single.values() if f is not None]
    if len(cases) > 1 and len(set(cases)) > 1:
        return True
    nobody = Target(unit=f"u{secrets.token_hex(6)}", finder="folder")
    return not (await bench.run(nobody, bench.test_seconds)).parsed.cases


def _masked(units: Sequence[str], run: Run) -> dict[str, Found]:
    """Units out of one whole run, by the names in its ids; `__suite__` is all of it."""
    named = named_cases(run.parsed.cases, [unit for unit in units if unit != SUITE_UNIT])
    found = {}
    for unit in units:
        whole = unit == SUITE_UNIT
        cases = tuple(run.parsed.cases) if whole else named[unit]
        finder: Finder = "whole_suite" if whole else "named_ids"
        found[unit] = _judged(unit, finder, run, cases, selectable=False)
    return found


def _judged(
    unit: str, finder: Finder, run: Run, cases: tuple[str, ...], *, selectable: bool
) -> Found:
    """What gold skips is not expected; everything else must pass."""
    skipped = tuple(sorted(c for c in cases if run.parsed.cases[c] == CaseStatus.SKIPPED))
    expected = tuple(sorted(c for c in cases if c not in skipped))
    entry = InventoryUnit(cases=expected, selectable=selectable, finder=finder, skipped=skipped)
    result = judge(entry, run)
    if result.state == UnitState.PASS:
        return Found(unit=entry)
    return Found(unit=entry, problem=_problem(unit, result.state, result.evidence, run, entry))


def _problem(unit: str, state: UnitState, evidence: str, run: Run, entry: InventoryUnit) -> str:
    bad = [c for c in entry.cases if run.parsed.cases.get(c) != CaseStatus.PASSED]
    detail = f", first {bad[0]} ({run.parsed.cases[bad[0]]})" if bad else ""
    if not entry.cases:
        detail = ", no test case found" + (" but skipped ones" if entry.skipped else "")
    if evidence:
        detail += f" [{evidence}]"
    return (
        f"unit {unit}: found {state} on the gold solution ({len(bad)} of {len(entry.cases)} cases "
        f"not passed{detail}); accepted: every case passes"
    )
