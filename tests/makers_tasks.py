"""Small task directories in the public format, made for a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

IMAGE = "registry.test/tasks/calc@sha256:" + "1" * 64

ADD = """--- /dev/null
+++ b/calc/add.py
@@ -0,0 +1,2 @@
+def add(a, b):
+    return a + b
"""
PARSE = """--- /dev/null
+++ b/calc/parse.py
@@ -0,0 +1,3 @@
+def parse(text):
+    left, right = text.split("+")
+    return int(left), int(right)
"""
RUN = """--- a/calc/__init__.py
+++ b/calc/__init__.py
@@ -1 +1,6 @@
 VERSION = "1"
+from calc.add import add
+from calc.parse import parse
+
+def run(text):
+    return add(*parse(text))
"""
TESTS = {
    "add": """from calc.add import add


def test_adds():
    assert add(2, 3) == 5


def test_adds_nothing():
    assert add(0, 0) == 0
""",
    "parse": """from calc.parse import parse


def test_splits():
    assert parse("1+2") == (1, 2)
""",
    "run": """import calc
import pytest


@pytest.mark.parametrize("text, total", [("1+2", 3), (" 4 + 5 ", 9)])
def test_runs(text, total):
    assert calc.run(text) == total
""",
}
GOLD = {"add": ADD, "parse": PARSE, "run": RUN}
SCRIPT = "set -u\nexec python3 -m pytest -v /tests/${STAYER_UNIT:-}\n"


def write_task(
    root: Path,
    *,
    tests: Mapping[str, str] = TESTS,
    gold: Mapping[str, str] = GOLD,
    files: Mapping[str, str] | None = None,
    edges: tuple[tuple[str, str], ...] = (("add", "run"), ("parse", "run")),
    settings: Mapping[str, object] | None = None,
) -> Path:
    """A valid Python task of the units `gold`: add and parse, which run needs."""
    task = root / "task_calc"
    document = {
        "instruction": "Build the calculator.", "difficulty": "easy", "parser_name": "pytest",
        "author_name": "a", "author_email": "a@b.c", "language": "python", **(settings or {}),
    }  # fmt: skip
    content: dict[str, str] = {
        "task.yaml": yaml.safe_dump(document),
        "Dockerfile": "FROM scratch\n",
        "run-tests.sh": SCRIPT,
        "base/calc/__init__.py": 'VERSION = "1"\n',
        "unit_dag.json": json.dumps(
            {
                "nodes": [{"id": unit, "layer": 0, "has_tests": unit in tests} for unit in gold],
                "edges": [{"from": a, "to": b, "type": "module_reuse"} for a, b in edges],
            }
        ),
    }
    dag = json.loads(content["unit_dag.json"])
    for node in dag["nodes"]:
        node["layer"] = 1 if any(node["id"] == target for _, target in edges) else 0
    content["unit_dag.json"] = json.dumps(dag)
    for unit, patch in gold.items():
        content[f"gold_patches/{unit}.diff"] = patch
        requirement = {"id": unit, "title": unit.title(), "requirement": f"Write {unit}."}
        content[f"requirements/{unit}.yaml"] = yaml.safe_dump(requirement)
    content |= {f"tests/{unit}/test_{unit}.py": text for unit, text in tests.items()}
    content |= dict(files or {})
    for name, text in content.items():
        path = task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return task
