"""Which unit does a case belong to, when only its id can say (evaluation.md §10.3)? Pure."""

import re
from collections.abc import Iterable, Sequence


def named_cases(cases: Iterable[str], units: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Unit → the cases whose id names it, in order of appearance.

    A name counts as a whole word, hyphens and underscores alike; a case that names several units
    belongs to the longest name. A unit that is only a number must be written `pr_3` or `unit_3`.
    """
    patterns = [(unit, _pattern(unit)) for unit in sorted(units, key=len, reverse=True)]
    found: dict[str, list[str]] = {unit: [] for unit in units}
    for case in cases:
        text = _plain(case)
        owner = next((unit for unit, pattern in patterns if pattern.search(text)), None)
        if owner is not None:
            found[owner].append(case)
    return {unit: tuple(ids) for unit, ids in found.items()}


def _pattern(unit: str) -> re.Pattern[str]:
    name = re.escape(_plain(unit))
    lead = "(?:pr|unit|task)_?" if unit.isdigit() else ""
    return re.compile(rf"(?<![a-z0-9]){lead}{name}(?![a-z0-9])")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())
