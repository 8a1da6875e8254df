"""What this process remembers and nobody else needs: which POSTs it sent, which pods it saw last.

Never the truth about anything. A process that starts with an empty ledger comes to the same ends;
the ledger only spares it waits and keeps a name from being used twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stayer_evaluator.records.outcomes import Role
from stayer_operator.core.observed import PodView, TrialObject
from stayer_operator.core.trial.spec import TrialSpec
from stayer_operator.core.trial.status import TrialStatus


@dataclass(frozen=True, slots=True)
class ParsedTrial:
    """What a Trial says, understood."""

    trial: TrialObject
    spec: TrialSpec
    status: TrialStatus


@dataclass(slots=True)
class TrialNotes:
    """About one Trial. `floor`: the incarnation of a role that was in force when this process
    first looked; up to it, others may have created pods that are gone.
    """

    floor: dict[Role, int]
    posted: dict[str, float] = field(default_factory=dict)
    tried: dict[str, float] = field(default_factory=dict)
    seen: dict[str, PodView] = field(default_factory=dict)
    written_at: float | None = None
    trouble: tuple[str, str] | None = None  # reason and message: why its pods are not created
    parsed: ParsedTrial | None = None  # while it has pods or is to have them: it is read often then
    swept_at: float | None = None  # when this process last deleted its pods, all at once


class Ledger:
    """Notes by the Trial's UID, and the UIDs of Trials that this process created."""

    def __init__(self) -> None:
        self._notes: dict[str, TrialNotes] = {}
        self._created: set[str] = set()

    def trial_created(self, uid: str) -> None:
        """A POST of ours made this Trial: nothing about its pods can have been missed."""
        self._created.add(uid)

    def meet(self, uid: str, status: TrialStatus, witnessed: bool) -> TrialNotes:
        """The notes of a Trial, begun at the first look."""
        notes = self._notes.get(uid)
        if notes is None:
            known = witnessed or uid in self._created
            floor = {role: 0 if known else status.incarnation(role) for role in Role}
            notes = self._notes[uid] = TrialNotes(floor=floor)
        return notes

    def find(self, uid: str) -> TrialNotes | None:
        """The notes, None when the Trial was not met."""
        return self._notes.get(uid)

    def close(self, uid: str) -> None:
        """The Trial has ended and its pods are gone: it never has others."""
        notes = self._notes.get(uid)
        if notes is not None:
            for names in (notes.posted, notes.tried, notes.seen):
                names.clear()
            notes.parsed = None

    def forget(self, uid: str) -> None:
        """The Trial is gone."""
        self._notes.pop(uid, None)
        self._created.discard(uid)
