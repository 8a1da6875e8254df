"""The gold run of evaluation.md §10.2: once per task digest, before its first trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import yaml

from stayer_evaluator.adjudication.bench import Bench, BenchFault
from stayer_evaluator.adjudication.discovery import Found, discover
from stayer_evaluator.adjudication.goldtree import gold_tree
from stayer_evaluator.adjudication.image import Image, look_at_image
from stayer_evaluator.adjudication.ports import Jobs, Places
from stayer_evaluator.adjudication.suites.files import looks_like_pytest, read_suite, suite_by_name
from stayer_evaluator.adjudication.suites.suite import Suite, SuiteFiles
from stayer_evaluator.episode.gold import Gold, gold_of
from stayer_evaluator.records import places as known_places
from stayer_evaluator.records.jobs import Job
from stayer_evaluator.records.task import Inventory, TaskRecord
from stayer_evaluator.snapshots.base import Base, write_base
from stayer_evaluator.snapshots.excludes import Excludes
from stayer_evaluator.snapshots.manifest import Tree
from stayer_evaluator.snapshots.packcache import PackCache
from stayer_evaluator.snapshots.restore import Owner, restore
from stayer_evaluator.storage.layout import TaskKeys
from stayer_evaluator.storage.store import ObjectExists, ObjectStore
from stayer_evaluator.tasks.bundle import read_bundle

APPLY_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRun:
    """Everything an inventory run works with; the seeded workspace lies in `places.workspace`."""

    record: TaskRecord
    store: ObjectStore
    jobs: Jobs
    places: Places
    label: str
    test_seconds: float
    runner: str = known_places.RUNNER

    @property
    def keys(self) -> TaskKeys:
        return TaskKeys(self.record.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenInventory:
    """The inventory as it is in the store, and logs of what did not pass, for people."""

    inventory: Inventory
    logs: tuple[tuple[str, bytes], ...] = ()


async def take_inventory(run: GoldRun) -> TakenInventory:
    """Base tree, gold tree, every unit's tests; written create-only, the first one counts.

    Raises BenchFault for a container that cannot be made ready (an environment fault says nothing
    of the task), BenchStopped, RunnerLost, StoreError.
    """
    base = await write_base(run.store, run.keys, run.places.workspace, Excludes())
    files = read_bundle(await run.store.get(run.keys.gold))
    image = await look_at_image(run.jobs, run.places, run.label)
    problem = await _apply_gold(run, gold_of(files, run.record))
    if problem:
        return TakenInventory(
            inventory=await _publish(run, _rejected(run, base, image, (problem,)))
        )
    packs = PackCache(run.places.packs.with_name("gold-packs"))
    try:
        tree = await gold_tree(run.places.workspace, packs.directory)
        return await _examine(run, base, image, tree, packs)
    finally:
        packs.close()


async def _examine(
    run: GoldRun, base: Base, image: Image, tree: Tree, packs: PackCache
) -> TakenInventory:
    files = read_suite(run.places.suite, [unit.id for unit in run.record.units])
    name = choose_suite(files, image, await _parser_name(run))
    if name is None:
        problem = "tests: found no run-tests.sh and nothing that pytest can run; accepted: either"
        return TakenInventory(
            inventory=await _publish(run, _rejected(run, base, image, (problem,)))
        )
    draft = _rejected(run, base, image, ()).model_copy(update={"suite": name})
    canaries: Literal["native", "script"] = "native"
    bench = _bench(run, draft, suite_by_name(name, files), tree, packs)
    await bench.prepare()
    if not await _canaries_hold(bench):
        # A script may not run foreign files: then only shell, user and log are controlled.
        canaries = "script"
        bench = _bench(run, draft, suite_by_name(name, files, canaries), tree, packs)
        await bench.prepare()
        if name == "pytest" or not await _canaries_hold(bench):
            raise BenchFault("canaries do not hold on the gold solution")
    found = await discover(bench, run.record.units)
    _demand_environment(found)
    inventory = draft.model_copy(
        update={
            "accepted": not any(f.problem for f in found.values()),
            "problems": tuple(f.problem for f in found.values() if f.problem),
            "units": {unit: f.unit for unit, f in found.items()},
            "canaries": canaries,
        }
    )
    return TakenInventory(inventory=await _publish(run, inventory), logs=tuple(bench.logs))


def choose_suite(
    files: SuiteFiles, image: Image, parser_name: str
) -> Literal["pytest", "script"] | None:
    """The adapter for a suite: pytest directly where image and suite allow, else its script."""
    by_folder = looks_like_pytest(files)
    unfolded = not files.folders and parser_name.startswith("pytest")
    if image.interpreter and (by_folder or unfolded):
        return "pytest"
    return "script" if files.script else None


async def _apply_gold(run: GoldRun, gold: Gold) -> str:
    """Apply every patch in reference order with the runner; the reason when one fails."""
    for number, step in enumerate(gold.sequence(run.record)):
        job = Job(
            id=f"{run.label}-gold-{number:04d}",
            argv=(run.runner, "apply", "--dir", run.places.within("workspace"), "-"),
            cwd="/",
            timeout_seconds=APPLY_SECONDS,
        )
        done = await run.jobs.run(job, step.diff)
        if done.result.error or done.result.stopped:
            raise BenchFault(f"applying gold: {done.result.error or 'stopped'}")
        if done.result.exit_code != 0:
            reason = " ".join(done.log[-400:].decode("utf-8", "replace").split())
            return f"gold patch {step.label}: does not apply to the image's workspace ({reason})"
    return ""


def _bench(run: GoldRun, inventory: Inventory, suite: Suite, tree: Tree, packs: PackCache) -> Bench:
    def fill(uid: int) -> None:
        restore(tree, packs, run.places.workspace, Owner(uid, uid))

    return Bench(
        jobs=run.jobs,
        suite=suite,
        places=run.places,
        inventory=inventory,
        restore=fill,
        candidate=0,
        label=f"{run.label}-{suite.name}-{'n' if suite.canary('x').native else 's'}",
        test_seconds=run.test_seconds,
    )


async def _canaries_hold(bench: Bench) -> bool:
    return all(canary.held for canary in await bench.canaries("before"))


def _demand_environment(found: Mapping[str, Found]) -> None:
    for unit, result in found.items():
        if "[environment]" in result.problem:
            raise BenchFault(f"unit {unit} could not be run: {result.problem}")


async def _parser_name(run: GoldRun) -> str:
    files = read_bundle(await run.store.get(run.keys.public))
    raw = yaml.safe_load(files.get("task.yaml", (b"", False))[0])
    return str(raw.get("parser_name") or "") if isinstance(raw, dict) else ""


def _rejected(run: GoldRun, base: Base, image: Image, problems: tuple[str, ...]) -> Inventory:
    return Inventory(
        task=run.record.name,
        digest=run.record.digest,
        accepted=False,
        problems=problems,
        suite="",
        units={},
        base_manifest=base.sha256,
        interpreter=image.interpreter,
        path=image.path,
    )


async def _publish(run: GoldRun, inventory: Inventory) -> Inventory:
    """Create it; a second run of the same task adopts the first one's."""
    try:
        await run.store.create(run.keys.inventory, inventory.to_bytes())
    except ObjectExists:
        return Inventory.from_bytes(await run.store.get(run.keys.inventory))
    return inventory
