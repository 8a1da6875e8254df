"""The example tasks in a task set of the tests' own; only missing images are built."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import httpx

from stayer_evaluator.storage.s3 import connect_s3
from stayer_evaluator.storage.settings import StoreSettings
from stayer_evaluator.tasks.digest import tree_digest
from stayer_evaluator.tasks.push import plan_push, push

ROOT = Path(__file__).parents[1]
TASKS = ROOT / "examples/tasks"
TASKSET = "tasksets/tests"
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
TREES = ROOT / "build/task-images.trees.json"


def load_demo() -> ModuleType:
    """hack/demo as a module: how tasks are built, what a demo's scores are compared with."""
    loader = SourceFileLoader("stayer_demo", str(ROOT / "hack/demo"))
    spec = importlib.util.spec_from_loader("stayer_demo", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def push_examples() -> None:
    """All example tasks into the tests' task set."""
    images = task_images()
    for name, image in images.items():
        push_task(TASKS / name, image, TASKSET)


def push_variant(folder: Path, mark: str) -> str:
    """The small task under a digest that nobody took an inventory of; returns its task set."""
    taskset = f"{TASKSET}-{mark}"
    copy = folder / "task_durations"
    shutil.copytree(TASKS / "task_durations", copy)
    text = (copy / "task.yaml").read_text()
    (copy / "task.yaml").write_text(f"{text}\n# {mark}\n")
    push_task(copy, task_images()["task_durations"], taskset)
    return taskset


def push_task(directory: Path, image: str, taskset: str) -> None:
    """Upload one task directory."""

    async def upload() -> None:
        store = connect_s3(StoreSettings.from_env(os.environ))
        await push(store, plan_push(directory, image, taskset))

    asyncio.run(upload())


def task_images() -> dict[str, str]:
    """References with digest by task; built when a task changed or the registry lacks its image."""
    demo = load_demo()
    directories = [Path(path) for path in demo.task_directories()]
    trees = {path.name: tree_digest(path) for path in directories}
    if _read(TREES) != trees or not _are_there(_read(demo.IMAGES), trees):
        demo.build_tasks()
        TREES.write_text(json.dumps(trees))
    return _read(demo.IMAGES)


def _read(path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _are_there(images: dict[str, str], wanted: dict[str, str]) -> bool:
    return images.keys() >= wanted.keys() and all(map(_is_there, images.values()))


def _is_there(image: str) -> bool:
    name, _, digest = image.partition("@")
    registry, _, repository = name.partition("/")
    url = f"http://{registry}/v2/{repository}/manifests/{digest}"
    accept = ", ".join(MANIFESTS)
    try:
        return httpx.head(url, headers={"Accept": accept}, timeout=10, trust_env=False).is_success
    except httpx.TransportError:
        return False
