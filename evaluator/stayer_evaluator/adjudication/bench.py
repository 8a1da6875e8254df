"""The test bench: one restored tree in the task container, and runs of the suite on it.

A bench belongs to one sitting over one snapshot: its candidate uid is new, everything writable was
emptied and everything of the last sitting is dead before the tree is restored.
"""

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from stayer_evaluator.adjudication.parsers.parsed import Parsed
from stayer_evaluator.adjudication.ports import Done, Jobs, Places
from stayer_evaluator.adjudication.results import Run, environment_fault, extra_passes, judge
from stayer_evaluator.adjudication.suites.suite import DEFAULT_PATH, Canary, Setting, Suite, Target
from stayer_evaluator.records.jobs import Job
from stayer_evaluator.records.outcomes import CaseStatus, UnitState
from stayer_evaluator.records.places import FIRST_CANDIDATE_UID
from stayer_evaluator.records.task import Inventory
from stayer_evaluator.records.verdict import CanaryResult, UnitResult
from stayer_evaluator.snapshots.wipe import wipe
from stayer_evaluator.tasks.bundle import write_files

#: Uids of candidates: well inside the 65,536 that a user namespace maps.
CANDIDATES = 40_000
CANARY_SECONDS = 120.0
WIPE_SECONDS = 300.0
LOG_LIMIT = 16 * 1024**2
_LOG_TAIL = 64 * 1024

Restore = Callable[[int], None]
"""Fills the workspace, everything owned by the uid given. Blocking; called in a thread."""


class BenchStopped(Exception):  # noqa: N818 (reads as what happened)
    """The runner was asked to stop: the pod is ending, the candidate has nothing to do with it."""


class BenchFault(Exception):  # noqa: N818
    """The container could not be made ready: no statement about the candidate is possible."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """Runs targets of one suite for one candidate."""

    jobs: Jobs
    suite: Suite
    places: Places
    inventory: Inventory
    restore: Restore
    candidate: int
    label: str
    test_seconds: float
    logs: list[tuple[str, bytes]] = field(default_factory=list)
    runner: str = ""
    _sequence: int = 0
    _whole: Run | None = None

    @property
    def uid(self) -> int:
        """The candidate's uid: 20000 + n (design.md §4)."""
        return FIRST_CANDIDATE_UID + self.candidate % CANDIDATES

    async def prepare(self) -> None:
        """Empty everything writable, with nothing left running, and restore the tree.

        Raises BenchFault, BenchStopped, RunnerLost; and what `restore` raises.
        """
        self._whole = None
        paths = (self.places.within("workspace"), self.places.within("home"), *self.places.wiped)
        job = Job(id=self._next_id(), kind="wipe", paths=paths, timeout_seconds=WIPE_SECONDS)
        result = (await self._run(job)).result
        if environment_fault(result) or result.exit_code not in (0, None):
            raise BenchFault(f"wiping failed: {result.error or result.exit_code}")
        await asyncio.to_thread(self._fill)

    async def run_unit(self, unit: str) -> UnitResult:
        """The tests of one unit; a suite that cannot select is run whole, once, and masked."""
        expected = self.inventory.units[unit]
        if expected.selectable:
            target = Target(unit=unit, finder=expected.finder)
            run = await self.run(target, self.test_seconds)
        else:
            run = self._whole or await self.run(Target(), self.test_seconds)
            self._whole = run
        result = judge(expected, run)
        if not expected.selectable:
            result = result.model_copy(update={"extra_cases": self._unknown(run)})
        if result.state != UnitState.PASS:
            self._note(unit, run)
        return result

    async def run(self, target: Target, seconds: float) -> Run:
        """One run of the suite on the tree as it lies."""
        setting = self._setting()
        command = self.suite.command(target, setting)
        job = Job(
            id=self._next_id(),
            argv=command.argv,
            env=dict(command.env),
            cwd=setting.workspace,
            uid=self.uid,
            gid=self.uid,
            timeout_seconds=seconds,
            log_limit_bytes=LOG_LIMIT,
        )
        done = await self._run(job)
        parsed = self.suite.parse(done.log, setting) if not done.result.error else Parsed()
        return Run(
            job=done.result,
            parsed=parsed,
            strict_exit=self.suite.strict_exit(target),
            log=done.log[-_LOG_TAIL:],
        )

    async def canaries(self, when: Literal["before", "after"]) -> tuple[CanaryResult, ...]:
        """Run a case that must pass and one that must fail, under names nobody knew before."""
        canary = self.suite.canary(f"c{secrets.token_hex(6)}")
        folder = self.places.suite / canary.folder
        write_files(_under(canary), self.places.suite)
        try:
            run = await self.run(Target(canary=canary), CANARY_SECONDS)
        finally:
            wipe(folder)
            folder.rmdir()
        if not all(result.held for result in _read(canary, when, run)):
            self._note(f"canary-{when}", run)
        return _read(canary, when, run)

    def _fill(self) -> None:
        self.restore(self.uid)
        os.chown(self.places.home, self.uid, self.uid)

    async def _run(self, job: Job) -> Done:
        done = await self.jobs.run(job)
        self.runner = done.result.runner or self.runner
        if done.result.stopped:
            raise BenchStopped
        return done

    def _setting(self) -> Setting:
        return Setting(
            interpreter=self.inventory.interpreter,
            path=self.inventory.path or DEFAULT_PATH,
            scratch=f"{self.places.wiped[0]}/s{secrets.token_hex(8)}",
            workspace=self.places.within("workspace"),
            suite=self.places.within("suite"),
            home=self.places.within("home"),
        )

    def _unknown(self, run: Run) -> tuple[str, ...]:
        known = {c for unit in self.inventory.units.values() for c in (*unit.cases, *unit.skipped)}
        return extra_passes(run.parsed.cases, known) if self._masks_all() else ()

    def _masks_all(self) -> bool:
        """Every case of a whole run belongs to some unit, so that an unknown one is an extra."""
        return all(not unit.selectable for unit in self.inventory.units.values())

    def _note(self, name: str, run: Run) -> None:
        self.logs.append((name, run.log))

    def _next_id(self) -> str:
        self._sequence += 1
        return f"{self.label}-{self._sequence:04d}"


def _under(canary: Canary) -> Mapping[str, tuple[bytes, bool]]:
    return {f"{canary.folder}/{name}": (data, False) for name, data in canary.files.items()}


def _read(canary: Canary, when: Literal["before", "after"], run: Run) -> tuple[CanaryResult, ...]:
    seen = run.parsed.cases if run.parsed.complete and not run.job.timed_out else {}
    expected = {canary.must_pass: CaseStatus.PASSED, canary.must_fail: CaseStatus.FAILED}
    return tuple(
        CanaryResult(name=name, when=when, expected=status, seen=seen.get(name, CaseStatus.MISSING))
        for name, status in expected.items()
    )
