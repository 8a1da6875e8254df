"""The gold patches of a task's `gold` archive, by unit. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from stayer_evaluator.records.task import TaskRecord

_WHOLE = ("gold-patch.diff", "gold_patch.diff")
_SLUG_MAP = "slug_diff_map.json"


@dataclass(frozen=True, slots=True)
class GoldStep:
    """One patch and the requirement files that get a copy of it."""

    label: str
    diff: bytes
    patch_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold patches; a unit without text is not in `units`."""

    units: Mapping[str, bytes]
    whole: bytes = b""

    def sequence(self, task: TaskRecord) -> tuple[GoldStep, ...]:
        """Every patch in the reference order (evaluation.md §10.6); where the task has only one
        patch for everything, that one, as the patch of every unit.
        """
        order = [unit for unit in task.reference_order if unit in self.units]
        order += [unit.id for unit in task.units if unit.id in self.units and unit.id not in order]
        if order:
            return tuple(GoldStep(unit, self.units[unit], (unit,)) for unit in order)
        if self.whole:
            return (GoldStep("*", self.whole, tuple(unit.id for unit in task.units)),)
        return ()


def gold_of(files: Mapping[str, tuple[bytes, bool]], task: TaskRecord) -> Gold:
    """Find each unit's patch in an archive: where slug_diff_map.json says, else
    `gold_patches/<unit>.diff` or `gold_patches/pr_<unit>.diff`.
    """
    slugs = _slug_map(files)
    units = {}
    for unit in task.units:
        stems = (unit.id, f"pr_{unit.id}")
        names = [slugs[stem] for stem in stems if stem in slugs]
        names += [f"gold_patches/{stem}.diff" for stem in stems]
        found = next((files[name][0] for name in names if name in files), b"")
        if found.strip():
            units[unit.id] = found
    whole = next((files[name][0] for name in _WHOLE if name in files), b"")
    return Gold(units, whole if whole.strip() else b"")


def _slug_map(files: Mapping[str, tuple[bytes, bool]]) -> dict[str, str]:
    try:
        found = orjson.loads(files.get(_SLUG_MAP, (b"{}", False))[0])
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(found, dict):
        return {}
    suffixes = (".yaml", ".yml")
    return {
        next((key[: -len(suffix)] for suffix in suffixes if key.endswith(suffix)), key): value
        for key, value in found.items()
        if isinstance(value, str)
    }
