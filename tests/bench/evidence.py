"""What benches put into the object store, and its removal. All of it has fixed names, so that a
bench which was killed leaves nothing that the next one does not find.
"""

from __future__ import annotations

import hashlib
import os

from bench.api import RUN_NAMESPACE
from stayer_evaluator.records.task import Inventory, InventoryUnit, TaskRecord, UnitRecord
from stayer_evaluator.storage.layout import TaskKeys, taskset_entry
from stayer_evaluator.storage.retry import RetryingMutableStore
from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.settings import StoreSettings

TASKSETS = "tasksets/bench"
REAL_TASKS = f"{TASKSETS}/real"
SCALE_TASKS = f"{TASKSETS}/scale"
SNAPSHOTS = "bench/"  # everything of the snapshot bench but its base tree
SCALE_TASK_COUNT = 20
UNITS = ("one", "two", "three")


def use_store() -> None:
    """boto3's credentials, from the local cluster's where none are set."""
    pairs = (("ACCESS_KEY_ID", "ACCESS_KEY"), ("SECRET_ACCESS_KEY", "SECRET_KEY"))
    for theirs, ours in pairs:
        if f"STAYER_S3_{ours}" in os.environ:
            os.environ.setdefault(f"AWS_{theirs}", os.environ[f"STAYER_S3_{ours}"])


def connect() -> RetryingMutableStore:
    """The store of the environment."""
    return connect_s3(StoreSettings.from_env(os.environ))


def bench_digest(name: str) -> str:
    """Digest of a task that exists in a bench only."""
    return hashlib.sha256(f"stayer bench {name}".encode()).hexdigest()


def scale_tasks() -> tuple[str, ...]:
    """Names of the tasks of the scale bench."""
    return tuple(f"simulated-{number:02d}" for number in range(SCALE_TASK_COUNT))


async def put_scale_tasks(store: RetryingMutableStore) -> None:
    """Records and accepted inventories: no pod will open these tasks."""
    for name in scale_tasks():
        digest = bench_digest(name)
        units = tuple(UnitRecord(id=unit, layer=0, has_tests=True) for unit in UNITS)
        record = TaskRecord(
            name=name,
            digest=digest,
            tree_digest=digest,
            image=f"simulated.invalid/{name}@sha256:{digest}",
            instruction="nobody reads this",
            units=units,
            reference_order=UNITS,
            depth=1,
        )
        case = InventoryUnit(cases=("case",), selectable=True, finder="folder")
        inventory = Inventory(
            task=name,
            digest=digest,
            accepted=True,
            suite="pytest",
            units=dict.fromkeys(UNITS, case),
            base_manifest=digest,
        )
        await store.create(TaskKeys(digest).inventory, inventory.to_bytes())
        await store.put(taskset_entry(SCALE_TASKS, name), record.to_bytes())


async def remove(store: RetryingMutableStore, *prefixes: str) -> None:
    """Delete every object below the prefixes."""
    for prefix in prefixes:
        if keys := await store.keys(prefix):
            await store.delete(keys)


async def delete_leftovers(store: RetryingMutableStore, *, keep_tasks: bool) -> None:
    """All that benches put there; `keep_tasks`: but for the pushed example. That task itself and
    its inventory stay: they are the demo's too.
    """
    tasks = [TaskKeys(bench_digest(name)).prefix for name in (*scale_tasks(), "snapshots")]
    real = () if keep_tasks else (f"{REAL_TASKS}/",)
    runs = f"runs/{RUN_NAMESPACE}/bench-"
    await remove(store, runs, f"{SCALE_TASKS}/", SNAPSHOTS, *tasks, *real)
