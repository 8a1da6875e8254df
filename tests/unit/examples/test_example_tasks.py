"""The example tasks hold what their README promises, and would be admitted (evaluation.md §9).

Everything runs in copies below tmp_path, without containers; the tasks' own run-tests.sh does it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

TASKS = Path(__file__).parents[3] / "examples" / "tasks"
NAMES = sorted(path.name for path in TASKS.glob("task_*"))
EDGE_TYPES = {"sequential_pr", "module_reuse", "producer_consumer", "compositional_layering"}
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NEEDED_FILES = (
    "Dockerfile",
    "docker-compose.yaml",
    "module_dag.yaml",
    "patch_order.json",
    "run-tests.sh",
    "slug_diff_map.json",
    "solution.sh",
    "task.yaml",
    "unit_dag.json",
)
PROVENANCE = (
    "source_url",
    "source_repository_url",
    "source_base_revision",
    "proposal_url",
    "license_status",
)
GIVEAWAYS = {"tests", "gold_patches", "solution.sh", "run-tests.sh", "gold-patch.diff"}
FORBIDDEN_IN_ID = re.compile(r"\s{2,}|\n| - ")


class ExampleTask:
    """One task directory, and runs of its tests against workspaces of our making."""

    def __init__(self, name: str) -> None:
        self.root = TASKS / name
        self.settings = yaml.safe_load(self.text("task.yaml"))
        self.dag = json.loads(self.text("unit_dag.json"))
        self.nodes = {node["id"]: node for node in self.dag["nodes"]}
        self.prerequisites: dict[str, set[str]] = {unit: set() for unit in self.nodes}
        for edge in self.dag["edges"]:
            self.prerequisites[edge["to"]].add(edge["from"])
        self.order: list[str] = json.loads(self.text("patch_order.json"))
        self.tested = [unit for unit in self.order if self.nodes[unit]["has_tests"]]

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def layers(self) -> dict[str, int]:
        layers: dict[str, int] = {}
        for unit in TopologicalSorter(self.prerequisites).static_order():
            layers[unit] = 1 + max((layers[p] for p in self.prerequisites[unit]), default=-1)
        return layers

    def ancestors(self, unit: str) -> set[str]:
        direct = self.prerequisites[unit]
        return direct.union(*(self.ancestors(parent) for parent in direct))

    def other_order(self) -> list[str]:
        """A topological order that takes what is ready in reverse order of the reference."""
        sorter = TopologicalSorter(self.prerequisites)
        sorter.prepare()
        ready: list[str] = []
        order: list[str] = []
        while sorter.is_active():
            ready = sorted([*ready, *sorter.get_ready()], key=self.order.index)
            unit = ready.pop()
            order.append(unit)
            sorter.done(unit)
        return order

    def workspace(self, units: Iterable[str], place: Path) -> Path:
        """The starting workspace with the gold of `units` applied in the order given."""
        folder = place / "workspace"
        shutil.copytree(self.root / "base", folder)
        self.apply(units, folder)
        return folder

    def apply(self, units: Iterable[str], workspace: Path) -> None:
        for unit in units:
            gold = str(self.root / "gold_patches" / f"{unit}.diff")
            subprocess.run(["git", "apply", gold], cwd=workspace, env=environment(), check=True)

    def run(self, workspace: Path, unit: str = "", *, enough: str = "") -> dict[str, bool]:
        """Case id → passed, of one unit or of all; from the runner's own output. With `enough`
        as an option of pytest it may end early.
        """
        env = environment(
            TEST_DIR=str(self.root / "tests"), STAYER_UNIT=unit, PYTEST_ADDOPTS=enough
        )
        done = subprocess.run(
            ["bash", str(self.root / "run-tests.sh")],
            cwd=workspace,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        cases = CASES[self.settings["x_base"]](done.stdout)
        assert (done.returncode == 0) == (bool(cases) and all(cases.values())), done.stdout
        return cases


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would steer the inner runs: no plugins, no repository around tmp_path."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHON", "GIT_", "NODE_", "TALLYBOOK_"))
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    ours = {"PATH": path, "GIT_CEILING_DIRECTORIES": "/", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {**kept, **ours, **more}


def pytest_cases(text: str) -> dict[str, bool]:
    found = re.findall(r"^(\S+::.+?) (PASSED|FAILED|ERROR)\b", text, re.MULTILINE)
    broken = re.findall(r"^(ERROR) (\S+\.py)", text, re.MULTILINE)
    return {case: status == "PASSED" for case, status in found} | {
        file: False for _, file in broken
    }


def node_cases(text: str) -> dict[str, bool]:
    report = text.partition("\n✖ failing tests:")[0]
    found = re.findall(r"^([✔✖]) (.+?) \([\d.]+ms\)$", report, re.MULTILINE)
    return {case: mark == "✔" for mark, case in found}


CASES = {"python": pytest_cases, "node": node_cases}


@cache
def load(name: str) -> ExampleTask:
    return ExampleTask(name)


def needs(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """What must be installed for the task's tests to run."""
    return (pytest.mark.node,) if load(name).settings["x_base"] == "node" else ()


@pytest.fixture(params=NAMES)
def task(request):
    return load(request.param)


@pytest.fixture(params=[pytest.param(name, marks=needs(name)) for name in NAMES])
def runnable(request):
    """A task whose tests are run."""
    return load(request.param)


def units_of(names):
    return [
        pytest.param(name, unit, id=f"{name}-{unit}", marks=needs(name))
        for name in names
        for unit in load(name).tested
    ]


def test_there_are_three_tasks():
    assert NAMES == ["task_cellgrid", "task_durations", "task_tallybook"]


def test_the_directory_has_the_public_layout(task):
    missing = [name for name in NEEDED_FILES if not (task.root / name).is_file()]
    assert missing == []
    assert not [path for path in task.root.rglob("*") if path.is_symlink()]
    assert not [path for path in (task.root / "base").rglob("*") if path.name in GIVEAWAYS]
    compose = yaml.safe_load(task.text("docker-compose.yaml"))
    assert set(compose["services"]) == {"client"}
    for name in ("run-tests.sh", "solution.sh"):
        assert os.access(task.root / name, os.X_OK)


def test_task_yaml_says_what_it_must(task):
    settings = task.settings
    assert settings["instruction"].strip()
    assert (settings["author_name"], settings["author_email"]) == (
        "Stayer developers",
        "developers@stayer.dev",
    )
    assert settings["difficulty"] in ("easy", "medium", "hard", "very_hard")
    assert settings["parser_name"] in ("pytest", "terminal")
    assert settings["docker"]["compose_file"] == "docker-compose.yaml"
    assert all(str(settings[key]).strip() for key in PROVENANCE)


def test_the_graph_is_acyclic_and_its_layers_are_right(task):
    layers = task.layers()
    assert {unit: node["layer"] for unit, node in task.nodes.items()} == layers
    assert task.dag["total_units"] == len(task.dag["nodes"]) == len(task.nodes)
    assert task.dag["num_layers"] == len(set(layers.values()))
    assert all(edge["type"] in EDGE_TYPES for edge in task.dag["edges"])
    assert all(SLUG.fullmatch(unit) for unit in task.nodes)


def test_both_graphs_say_the_same(task):
    module = yaml.safe_load(task.text("module_dag.yaml"))
    ends = {(edge["from"], edge["to"]) for edge in task.dag["edges"]}
    assert {(edge["from"], edge["to"]) for edge in module["edges"]} == ends
    by_order = sorted(module["nodes"], key=lambda node: node["impl_order"])
    assert [node["id"] for node in by_order] == task.order


def test_every_unit_has_its_files(task):
    stems = {kind: sorted(path.stem for path in (task.root / kind).iterdir()) for kind in
             ("requirements", "gold_patches")}  # fmt: skip
    assert stems["requirements"] == stems["gold_patches"] == sorted(task.nodes)
    assert sorted(path.name for path in (task.root / "tests").iterdir()) == sorted(task.tested)
    slugs = json.loads(task.text("slug_diff_map.json"))
    assert slugs == {f"{unit}.yaml": f"gold_patches/{unit}.diff" for unit in task.order}


def test_requirements_name_the_files_that_the_gold_changes(task):
    for unit in task.order:
        requirement = yaml.safe_load(task.text(f"requirements/{unit}.yaml"))
        assert requirement["id"] == unit
        assert requirement["title"].strip()
        block = requirement["requirement"].partition("## Files to modify\n")[2]
        gold = task.text(f"gold_patches/{unit}.diff")
        changed = re.findall(r"^diff --git a/(\S+) b/\1$", gold, re.MULTILINE)
        assert sorted(re.findall(r"^- `(.+)`$", block, re.MULTILINE)) == sorted(changed)
        assert re.search(r"^\+(?!\+\+)", gold, re.MULTILINE)


def test_orders_agree_and_respect_the_edges(task):
    listed = re.search(r"^units=\(\n(.*?)^\)", task.text("solution.sh"), re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert listed[1].split() == task.order
    for unit in task.order:
        earlier = set(task.order[: task.order.index(unit)])
        assert task.ancestors(unit) <= earlier


def test_patches_give_the_same_in_another_order(task, tmp_path):
    other = task.other_order()
    if len(task.order) > 2:
        assert other != task.order
    first = contents(task.workspace(task.order, tmp_path / "reference"))
    assert contents(task.workspace(other, tmp_path / "other")) == first


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_solution_script_applies_everything(task, tmp_path):
    workspace = task.workspace([], tmp_path)
    script = task.root / "solution.sh"
    env = environment(WORKSPACE=str(workspace))
    subprocess.run(["bash", str(script)], cwd=tmp_path, env=env, check=True)
    patches = workspace / "requirement_patches"
    assert sorted(path.stem for path in patches.iterdir()) == sorted(task.order)
    shutil.rmtree(patches)
    assert contents(workspace) == contents(task.workspace(task.order, tmp_path / "reference"))


def test_the_untouched_workspace_passes_nothing(runnable, tmp_path):
    workspace = runnable.workspace([], tmp_path)
    cases = runnable.run(workspace)
    assert not any(cases.values())
    for unit in runnable.tested:
        assert any(f"{unit}/" in case for case in cases), f"{unit} was not run"


def test_gold_of_everything_passes_everything(runnable, tmp_path):
    cases = runnable.run(runnable.workspace(runnable.order, tmp_path))
    assert cases
    assert all(cases.values())
    assert not [case for case in cases if FORBIDDEN_IN_ID.search(case)]
    if runnable.root.name == "task_tallybook":
        assert len(cases) >= 60


@pytest.mark.parametrize(("name", "unit"), units_of(NAMES))
def test_a_unit_needs_its_own_gold_and_no_more(name, unit, tmp_path):
    """On its prerequisites' gold alone some of its tests fail, with its own on top none does."""
    task = load(name)
    before = [other for other in task.order if other in task.ancestors(unit)]
    workspace = task.workspace(before, tmp_path)
    without = task.run(workspace, unit, enough="--exitfirst")
    assert without
    assert not all(without.values())
    task.apply([unit], workspace)
    cases = task.run(workspace, unit)
    assert cases
    assert all(cases.values())


def source_lines(workspace: Path, suffix: str) -> int:
    return sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in workspace.rglob(f"*{suffix}")
    )


def test_tallybook_is_large(tmp_path):
    task = load("task_tallybook")
    workspace = task.workspace(task.order, tmp_path)
    assert source_lines(workspace, ".py") >= 2000
    assert len(task.order) >= 8
    assert 1 + max(task.layers().values()) >= 5
    assert [unit for unit in task.order if unit not in task.tested] == ["sample-books"]
    assert task.prerequisites["command-line"] >= {"sample-books"}


def test_cellgrid_is_of_middle_size(tmp_path):
    task = load("task_cellgrid")
    workspace = task.workspace(task.order, tmp_path)
    assert 400 <= source_lines(workspace, ".js") <= 1200
    assert len(task.order) >= 5
    assert 1 + max(task.layers().values()) >= 3


def test_durations_is_tiny():
    task = load("task_durations")
    assert task.prerequisites == {
        "duration-text": set(),
        "duration-words": {"duration-text"},
        "retry-schedule": {"duration-text"},
    }
