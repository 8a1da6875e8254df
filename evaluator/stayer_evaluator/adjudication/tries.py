"""How often a checkpoint was begun: one that kills its grader twice is given up (design.md §4).

A start is marked create-only before anything of the snapshot runs. A start that ended because its
pod was told to stop, with the runner alive to say so, is forgiven by a second mark: mostly the
candidate had no part in it. Not always: the kubelet evicts a pod whose tests overran a volume, and
gives the runner two seconds to say that it is being stopped. So forgiveness has its end.
"""

from stayer_evaluator.records.queue import Writer
from stayer_evaluator.storage.layout import TrialKeys
from stayer_evaluator.storage.store import ObjectExists, ObjectMissing, ObjectStore

#: Starts without an end after which the snapshot is given up.
MAX_LOST = 2
#: All starts of a snapshot, forgiven ones too. More than a trial's pods are replaced by default for
#: infrastructure's sake (infraRetries: 5), so an honest history is hardly longer.
MAX_STARTS = 8


class Tries:
    """The marks of one trial, set by one adjudicator."""

    def __init__(self, store: ObjectStore, keys: TrialKeys, writer: Writer) -> None:
        self.store = store
        self.keys = keys
        self.writer = writer
        self._mark = writer.to_bytes()
        self._begun: dict[int, int] = {}

    async def begin(self, number: int) -> bool:
        """Mark a start on queue entry `number`; False when too many were lost, or made at all."""
        lost = 0
        for start in range(1, MAX_STARTS + 1):
            try:
                await self.store.create(self.keys.started(number, start), self._mark)
            except ObjectExists:
                lost += not await self._forgiven(number, start)
                if lost >= MAX_LOST:
                    return False
                continue
            self._begun[number] = start
            return True
        return False

    async def forgive(self, number: int) -> None:
        """The start that this adjudicator marked last was ended from outside."""
        start = self._begun.get(number)
        if start is not None:
            await self.store.create(self._stopped(number, start), self._mark)

    async def _forgiven(self, number: int, start: int) -> bool:
        try:
            await self.store.get(self._stopped(number, start))
        except ObjectMissing:
            return False
        return True

    def _stopped(self, number: int, start: int) -> str:
        return self.keys.log(f"stopped-{number:08d}-try{start}")
