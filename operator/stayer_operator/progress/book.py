"""The newest report of each sidecar, by trial."""

from __future__ import annotations

from collections.abc import Callable

from stayer_evaluator.records.reports import ProgressReport
from stayer_operator.core.observed import ObjectKey, Progress

_NUMBERS = (
    "round",
    "snapshots_taken",
    "snapshots_adjudicated",
    "units_cleared",
    "units_total",
    "regressions",
    "recoveries",
)
Listener = Callable[[ObjectKey, ProgressReport], None]


class ProgressBook:
    """Reports in memory. Only trials that exist get a page, and it goes with them."""

    def __init__(self, exists: Callable[[ObjectKey], bool]) -> None:
        """`exists` says whether the Trial is known, so that memory stays bounded."""
        self._exists = exists
        self._pages: dict[ObjectKey, dict[str, ProgressReport]] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` for every report that was taken."""
        self._listeners.append(listener)

    def knows(self, key: ObjectKey) -> bool:
        """Whether the Trial is there: pods of one that is not are left over from it."""
        return self._exists(key)

    def take(self, key: ObjectKey, report: ProgressReport) -> bool:
        """Keep a report, unless its trial is not there or a later incarnation has spoken."""
        if not self._exists(key):
            return False
        page = self._pages.setdefault(key, {})
        last = page.get(report.role)
        if last is not None and last.incarnation > report.incarnation:
            return False
        page[report.role] = report
        for listener in self._listeners:
            listener(key, report)
        return True

    def drop(self, key: ObjectKey) -> None:
        """The trial is gone."""
        self._pages.pop(key, None)

    def progress(self, key: ObjectKey) -> Progress | None:
        """Both roles folded into one; numbers are cumulative, so the larger is the newer."""
        page = self._pages.get(key)
        if not page:
            return None
        return Progress(
            **{
                name: max(
                    (
                        value
                        for report in page.values()
                        if (value := getattr(report, name)) is not None
                    ),
                    default=None,
                )
                for name in _NUMBERS
            }
        )
