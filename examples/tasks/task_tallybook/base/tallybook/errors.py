"""What can go wrong with somebody's books.

TallyError
├── CommodityError   amounts of different commodities were mixed
├── BalanceError     a transaction does not balance
├── ParseError       a text (journal, rules file, amount, date) is malformed
└── QueryError       a query is malformed
"""


class TallyError(Exception):
    """A problem that the keeper of the books can mend."""


class CommodityError(TallyError):
    """Amounts of different commodities were added or compared."""


class BalanceError(TallyError):
    """A transaction does not balance, or cannot be completed."""


class ParseError(TallyError):
    """Malformed text; `source` and `line` say where, when that is known."""

    def __init__(self, message: str, source: str | None = None, line: int | None = None):
        super().__init__(message)
        self.message = message
        self.source = source
        self.line = line

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.source, self.line) if part is not None)
        return f"{place}: {self.message}" if place else self.message


class QueryError(TallyError):
    """A malformed query; `column` is the 0-based offset of the offending text."""

    def __init__(self, message: str, column: int | None = None):
        super().__init__(message)
        self.message = message
        self.column = column

    def __str__(self) -> str:
        return self.message if self.column is None else f"column {self.column}: {self.message}"
