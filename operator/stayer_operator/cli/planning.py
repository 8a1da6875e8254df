"""`stayer run plan`: read what the run names, check it as the operator would, estimate."""

import asyncio
import re

from stayer_evaluator.storage.layout import taskset_entry
from stayer_evaluator.storage.store import ObjectMissing
from stayer_operator.api.run import RunSpec
from stayer_operator.api.wording import counted
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.output import Document
from stayer_operator.cli.store_access import open_store
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.run.problems import Problem, shown, summary
from stayer_operator.core.run.prospect import Prospect, prospect
from stayer_operator.core.run.settings import harness_traits
from stayer_operator.core.run.spec import name_problems, parse_spec
from stayer_operator.core.run.tasks import select_tasks, unmatched_task_globs
from stayer_operator.core.run.validate import script_texts, spec_problems, task_problems

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def run_prospect(manifest: Document) -> Prospect:
    """The prospect of a run. Raises CliError with all its problems at once."""
    wrong_name = run_name_problems(manifest["metadata"]["name"])
    spec = parse_spec(manifest)
    if not isinstance(spec, RunSpec):
        raise _refused((*wrong_name, *spec))
    problems = (*wrong_name, *spec_problems(spec, harness_traits(), {}))
    if problems:
        raise _refused(problems)
    if spec.tasks.source.s3 is None:
        raise CliError("spec.tasks.source: found configMap; `run plan` reads s3 sources")
    files = asyncio.run(_records(spec.tasks.source.s3.prefix))
    selected = select_tasks(files, spec)
    problems = (
        *selected.problems,
        *unmatched_task_globs(files, spec),
        *task_problems(spec, selected.tasks, script_texts(spec, {})),
    )
    if problems:
        raise _refused(problems)
    defaults = PodSettings(
        evaluator_image="", runner_image="", relay_url="", relay_ip="", progress_url="",
        progress_ip="",
    )  # fmt: skip
    return prospect(spec, selected.tasks, defaults.task_resources, defaults.sidecar_resources)


def run_name_problems(name: str) -> tuple[Problem, ...]:
    """What the operator would find in a run's name, and what the API server finds before it."""
    found = name_problems(name)
    if found or DNS_LABEL.fullmatch(name):
        return found
    return (
        Problem(
            field="metadata.name",
            found=shown(name),
            accepted="a-z, 0-9 and -, with a letter or digit first and last",
        ),
    )


def cell_rows(found: Prospect) -> list[tuple[object, ...]]:
    """One row a cell: task, agent, model, loop profile, attempts, agent time limit."""
    return [
        (cell.task, cell.agent, cell.model, cell.loop, cell.attempts, f"{cell.agent_seconds} s")
        for cell in found.cells
    ]


def lines(found: Prospect) -> list[str]:
    """The sums, a line each."""
    inventories = counted(found.inventories, "inventory", "inventories")
    return [
        f"trials: {found.trials}, and {inventories} where none is stored yet",
        f"pods: {found.pods} in all, {found.pods_at_once} at once",
        f"requests at once: {found.cpu:g} CPU, {found.memory / 1024**2:,.0f} MiB",
        f"hours: {found.expected_hours:.2f} expected, {found.longest_hours:.2f} at most",
    ]


async def _records(prefix: str) -> dict[str, bytes]:
    store = open_store()
    start = taskset_entry(prefix, "")[: -len(".json")]
    found = [key for key in await store.keys(start) if key.endswith(".json")]
    if not found:
        raise CliError(f"spec.tasks.source.s3.prefix: found no task under {prefix}")
    try:
        return {key[len(start) : -len(".json")]: await store.get(key) for key in found}
    except ObjectMissing as error:
        raise CliError(f"{error} was removed while it was read; try again") from error


def _refused(problems: tuple[Problem, ...]) -> CliError:
    return CliError(f"the run would be refused: {summary(problems)}")
