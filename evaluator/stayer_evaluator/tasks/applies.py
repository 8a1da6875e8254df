"""Do the gold patches apply? Tried with git on a private copy of `base/`, on a person's machine.

Never used on an agent's tree. Patches build on each other, so they are really applied, one after
the other in reference order; a patch that fails is named and the ones after it are not judged.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stayer_evaluator.tasks.model import Task
from stayer_evaluator.tasks.problems import Problem

_SECONDS = 120


def gold_problems(task: Task, order: Sequence[str]) -> tuple[Problem, ...]:
    """Gold patches that do not apply to `base/` in `order`; none when all do."""
    patches = gold_sequence(task, order)
    base = task.root / "base"
    if not patches or not base.is_dir():
        return ()
    with tempfile.TemporaryDirectory(prefix="stayer-validate-") as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(base, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        for patch in patches:
            reason = _apply(patch, tree)
            if reason:
                return (_problem(patch.relative_to(task.root).as_posix(), reason),)
    return ()


def gold_sequence(task: Task, order: Sequence[str]) -> tuple[Path, ...]:
    """The patches that make the whole gold solution, in the order to apply them.

    Per-unit shards where there are any, else the one patch for all. Empty shards change nothing.
    """
    shards = {unit.id: unit.gold for unit in task.units if unit.gold is not None}
    found = [shards[unit] for unit in order if unit in shards]
    if not found and task.gold_whole is not None:
        found = [task.gold_whole]
    return tuple(path for path in found if path.stat().st_size)


def _apply(patch: Path, tree: Path) -> str:
    """Apply in place; the reason when it fails, else nothing."""
    git = shutil.which("git")
    if git is None:
        return "no git on this machine to try it with"
    done = subprocess.run(  # noqa: S603 (fixed program, our own arguments)
        [git, "apply", "--whitespace=nowarn", str(patch.resolve())],
        cwd=tree,
        env={"PATH": os.environ.get("PATH", ""), "GIT_CEILING_DIRECTORIES": str(tree.parent),
             "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"},
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git apply failed"]
    return "; ".join(lines[:3])


def _problem(file: str, reason: str) -> Problem:
    return Problem(
        file=file,
        found=f"a gold patch that does not apply ({reason})",
        accepted="a diff that applies to base/ after the patches before it in reference order",
    )
