"""`stayer tasks`: validate, build, push."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from stayer_evaluator.tasks.problems import InvalidTask, Problem, errors
from stayer_evaluator.tasks.push import PushPlan, plan_push, push
from stayer_evaluator.tasks.validate import check_task
from stayer_operator.api.wording import counted
from stayer_operator.cli import store_access
from stayer_operator.cli.errors import CliError
from stayer_operator.cli.image_build import Builder, wanted_base
from stayer_operator.cli.options import OutputFormat
from stayer_operator.cli.output import Output, console, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Task directories.")


def without_files(paths: list[Path]) -> list[Path]:
    """The directories among the paths, as `tasks/*` gives a README.md too; what is left out is
    said. Where none is a directory all stay, to be refused one by one.
    """
    directories = [path for path in paths if path.is_dir()]
    if not directories:
        return paths
    for path in paths:
        if path.is_file():
            typer.echo(f"{path}: no task directory, left out", err=True)
    return [path for path in paths if not path.is_file()]


Directories = Annotated[
    list[Path],
    typer.Argument(help="Task directories.", show_default=False, callback=without_files),
]


@app.command()
def validate(directories: Directories, output: OutputFormat = Output.TABLE) -> None:
    """Check task directories; every problem of every task at once. Exit code 1 when one has any."""
    checked = [(directory, *check_task(directory)) for directory in directories]
    if output is Output.JSON:
        print_json([_report(str(d), problems) for d, _, problems in checked])
    else:
        for directory, task, problems in checked:
            bad = bool(errors(problems))
            units = counted(len(task.units), "unit")
            console.print(f"{directory}: {'refused' if bad else f'{units}, good'}")
            for problem in problems:
                console.print(f"  {problem.severity}: {problem}", markup=False, soft_wrap=True)
    if any(errors(problems) for _, _, problems in checked):
        raise typer.Exit(1)


@app.command()
def build(
    directories: Directories,
    registry: Annotated[str, typer.Option(help="Registry and path: host:port/path.")],
    base_image: Annotated[
        list[str] | None,
        typer.Option(help="KIND=IMAGE for tasks whose x_base is KIND; may be repeated."),
    ] = None,
    plain_http: Annotated[bool, typer.Option(help="The registry speaks plain HTTP.")] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Build the tasks' images and push them; with `-o json` what `push --images` reads."""
    bases = _pairs(base_image or [], "--base-image")
    builder = Builder.find(plain_http=plain_http)
    images = {}
    for directory in directories:
        task, problems = check_task(directory)
        _refuse(task.name, problems)
        tag = f"{registry}/{task.name.replace('_', '-')}:latest"
        if output is Output.TABLE:
            console.print(f"{task.name}: building")
        builder.build(directory, tag, wanted_base(directory, bases))
        images[task.name] = builder.push(tag)
    if output is Output.JSON:
        print_json(images)
        return
    print_table(("TASK", "IMAGE"), list(images.items()))


@app.command("push")
def push_(
    directories: Directories,
    taskset: Annotated[str, typer.Option(help="Key prefix, as in spec.tasks.source.s3.prefix.")],
    images: Annotated[
        Path | None, typer.Option(help="JSON file {task: image with digest}.", show_default=False)
    ] = None,
    image: Annotated[
        list[str] | None, typer.Option(help="TASK=IMAGE@sha256:...; may be repeated.")
    ] = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Upload task directories into a task set of the object store."""
    known = _read_images(images) | _pairs(image or [], "--image")
    plans = [_plan(directory, known, taskset) for directory in directories]
    records = asyncio.run(_push_all(plans))
    if output is Output.JSON:
        print_json([record.model_dump(mode="json") for record in records])
        return
    rows = [(r.name, r.digest[:12], len(r.units), r.depth, r.image) for r in records]
    print_table(("TASK", "DIGEST", "UNITS", "DEPTH", "IMAGE"), rows)


async def _push_all(plans: list[PushPlan]) -> list[store_access.TaskRecord]:
    store = store_access.open_store()
    return [await push(store, plan) for plan in plans]


def _plan(directory: Path, images: dict[str, str], taskset: str) -> PushPlan:
    name = directory.resolve().name
    if name not in images:
        raise CliError(
            f"task {name}: no image given; accepted: --image {name}=IMAGE@sha256:... or "
            "--images with the output of `stayer tasks build -o json`"
        )
    try:
        return plan_push(directory, images[name], taskset)
    except InvalidTask as error:
        raise CliError(str(error)) from error


def _refuse(name: str, problems: tuple[Problem, ...]) -> None:
    if errors(problems):
        raise CliError(str(InvalidTask(name, errors(problems))))


def _report(directory: str, problems: tuple[Problem, ...]) -> dict[str, object]:
    fields = ("severity", "file", "field", "found", "accepted")
    return {
        "task": directory,
        "accepted": not errors(problems),
        "problems": [{f: getattr(problem, f) for f in fields} for problem in problems],
    }


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator and value):
            raise CliError(f"{option}: found {text!r}, accepted: NAME=IMAGE")
        pairs[name] = value
    return pairs


def _read_images(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CliError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise CliError(f"{path}: found {type(found).__name__}, accepted: {{task: image}}")
    return {str(name): str(image) for name, image in found.items()}
