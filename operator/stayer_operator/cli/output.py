"""Tables for people, JSON for programs."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

Document = dict[str, Any]

console = Console(highlight=False, soft_wrap=False)


class Output(StrEnum):
    """Value of `--output`."""

    TABLE = "table"
    JSON = "json"


def print_json(document: Any) -> None:
    """One JSON document on standard output, keys in the order given."""
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())  # noqa: T201


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table without borders; as wide as its content where the output is no terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    lines = [[text(cell) for cell in row] for row in rows]
    for line in lines:
        table.add_row(*line)
    if console.is_terminal:
        console.print(table)
        return
    widest = [max(map(len, column)) for column in zip(columns, *lines, strict=True)]
    Console(width=sum(widest) + 2 * len(columns) + 1, highlight=False).print(table)


def size(count: int) -> str:
    """Bytes for people, in powers of 1024: 812 B, 3.4 KiB, 27 MiB."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1000:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f} {unit}" if amount < 10 and unit != "B" else f"{amount:.0f} {unit}"


def text(value: object) -> str:
    """A cell: a dash for nothing, three digits for fractions."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)
