"""What a bench has to say: checks against goals, tables behind them; as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MARKS = {True: "ok", False: "MISSED", None: "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One measured quantity. `holds` is None where there is no goal."""

    quantity: str
    goal: str
    seen: str
    holds: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures behind the checks."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Of one bench. `figures` are the numbers for programs, in the units that their names say."""

    name: str
    title: str
    checks: Sequence[Check]
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """No goal was missed."""
        return all(check.holds is not False for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}

    def render(self) -> str:
        """For a terminal."""
        rows = [(c.quantity, c.goal, c.seen, MARKS[c.holds]) for c in self.checks]
        parts = [f"{self.name}: {self.title}", align(("", "goal", "seen", "verdict"), rows)]
        parts += [f"{table.title}\n{align(table.columns, table.rows)}" for table in self.tables]
        parts += [f"({note})" for note in self.notes]
        return "\n\n".join(parts)


def align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, the first to the left, the others to the right."""
    lines = [tuple(columns), *(tuple(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    padded = [first.ljust(widths[0])]
    padded += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
    return "  " + "  ".join(padded).rstrip()
