"""What a schema cannot say of a run's spec. Every check reports all it finds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stayer_evaluator.records.run import RunTask
from stayer_operator.api.matrix import Agent, Cells, ExcludedCells, IncludedCells, Matrix
from stayer_operator.api.run import RunSpec
from stayer_operator.core.run.cells import run_cells
from stayer_operator.core.run.globs import is_glob, matches
from stayer_operator.core.run.problems import Problem, one_of, shown
from stayer_operator.core.run.scripts import gold_units, script_problems
from stayer_operator.core.run.settings import HarnessTraits
from stayer_operator.core.run.tasks import known_tasks
from stayer_operator.core.run.templates import template_problems

ScriptTexts = Mapping[tuple[str, str], str | None]


def spec_problems(
    spec: RunSpec, harnesses: Mapping[str, HarnessTraits], texts: ScriptTexts
) -> tuple[Problem, ...]:
    """Everything that can be said without knowing the tasks. `texts` as in RunView.scripts."""
    return (
        *_source(spec),
        *_duplicates(spec),
        *_globs(spec),
        *_harnesses(spec, harnesses),
        *_scripts(spec, harnesses, texts),
        *_references(spec),
        *_exclusive(spec.matrix),
        *_empty_excludes(spec.matrix),
        *template_problems(spec),
    )


def task_problems(
    spec: RunSpec, tasks: Sequence[RunTask], scripts: Mapping[str, str]
) -> tuple[Problem, ...]:
    """What is wrong with a sound spec on these tasks (those that spec.tasks selects)."""
    if not tasks:
        return (
            Problem(
                field="spec.tasks",
                found="no task left after include and exclude",
                accepted="globs that select at least one task",
            ),
        )
    unmatched = tuple(_unmatched(spec, tuple(task.name for task in tasks)))
    cells = run_cells(spec, tasks)
    if not cells and not unmatched:
        found = "no cell left after exclude"
        return (
            Problem(field="spec.matrix", found=found, accepted="a matrix with at least one cell"),
        )
    return (*unmatched, *_unknown_units(spec, tasks, scripts))


def script_texts(spec: RunSpec, texts: ScriptTexts) -> dict[str, str]:
    """Agent name -> text of its script, where there is one."""
    found = {agent.name: _text(agent, texts) for agent in spec.matrix.agents}
    return {name: text for name, text in found.items() if text is not None}


def _text(agent: Agent, texts: ScriptTexts) -> str | None:
    reference = agent.script_config_map
    return agent.script if reference is None else texts.get((reference.name, reference.key))


def _source(spec: RunSpec) -> Iterator[Problem]:
    source = spec.tasks.source
    given = [name for name in ("s3", "config_map") if getattr(source, name) is not None]
    if len(given) != 1:
        yield Problem(
            field="spec.tasks.source",
            found="both" if given else "neither",
            accepted="exactly one of s3 and configMap",
        )


def _duplicates(spec: RunSpec) -> Iterator[Problem]:
    matrix = spec.matrix
    lists: Mapping[str, Iterable[str]] = {
        "matrix.agents": (entry.name for entry in matrix.agents),
        "matrix.models": (entry.name for entry in matrix.models),
        "matrix.loopProfiles": (entry.name for entry in matrix.loop_profiles),
        "modelLimits": (entry.model for entry in spec.model_limits),
        "attemptsByTask": (entry.task for entry in spec.attempts_by_task),
    }
    for field, entries in lists.items():
        for name, count in Counter(entries).items():
            if count > 1:
                yield Problem(
                    field=f"spec.{field}",
                    found=f"{shown(name)} {count} times",
                    accepted="every name once",
                )


def _all_globs(spec: RunSpec) -> Iterator[tuple[str, str]]:
    """Field -> glob of every glob below the matrix and attempts."""
    for index, attempts in enumerate(spec.attempts_by_task):
        yield f"spec.attemptsByTask[{index}].task", attempts.task
    for index, included in enumerate(spec.matrix.include):
        yield f"spec.matrix.include[{index}].task", included.task
    for index, excluded in enumerate(spec.matrix.exclude):
        if excluded.task is not None:
            yield f"spec.matrix.exclude[{index}].task", excluded.task
    for index, cells in enumerate(spec.matrix.cells):
        for position, glob in enumerate(cells.tasks):
            yield f"spec.matrix.cells[{index}].tasks[{position}]", glob


def _globs(spec: RunSpec) -> Iterator[Problem]:
    fields = [(f"spec.tasks.include[{i}]", glob) for i, glob in enumerate(spec.tasks.include)]
    fields += [(f"spec.tasks.exclude[{i}]", glob) for i, glob in enumerate(spec.tasks.exclude)]
    for field, glob in (*fields, *_all_globs(spec)):
        if not is_glob(glob):
            accepted = "a glob of letters, digits, . _ - and *, ?, [abc], [!abc]"
            yield Problem(field=field, found=shown(glob), accepted=accepted)


def _unmatched(spec: RunSpec, names: tuple[str, ...]) -> Iterator[Problem]:
    for field, glob in _all_globs(spec):
        if not any(matches(name, (glob,)) for name in names):
            yield Problem(
                field=field,
                found=f"{shown(glob)}, which matches no task of the run",
                accepted=f"a glob that matches one of: {known_tasks(names)}",
            )


def _references(spec: RunSpec) -> Iterator[Problem]:
    matrix = spec.matrix
    agents = [entry.name for entry in matrix.agents]
    models = [entry.name for entry in matrix.models]
    loops = [entry.name for entry in matrix.loop_profiles]
    for index, limit in enumerate(spec.model_limits):
        yield from _reference(f"spec.modelLimits[{index}].model", limit.model, models)
    entries: dict[str, Sequence[IncludedCells | ExcludedCells | Cells]] = {
        "include": matrix.include,
        "exclude": matrix.exclude,
        "cells": matrix.cells,
    }
    for name, listed in entries.items():
        for index, entry in enumerate(listed):
            path = f"spec.matrix.{name}[{index}]"
            yield from _reference(f"{path}.agent", entry.agent, agents)
            yield from _reference(f"{path}.model", entry.model, models)
            yield from _reference(f"{path}.loopProfile", entry.loop_profile, loops)


def _reference(field: str, name: str | None, known: Sequence[str]) -> Iterator[Problem]:
    if name is not None and name not in known:
        yield Problem(field=field, found=shown(name), accepted=one_of(name, known))


def _exclusive(matrix: Matrix) -> Iterator[Problem]:
    if matrix.cells and (matrix.include or matrix.exclude):
        yield Problem(
            field="spec.matrix",
            found="cells together with include or exclude",
            accepted="cells alone, or include and exclude without cells",
        )


def _empty_excludes(matrix: Matrix) -> Iterator[Problem]:
    for index, entry in enumerate(matrix.exclude):
        if entry == ExcludedCells():
            accepted = "at least one of task, agent, model, loopProfile"
            path = f"spec.matrix.exclude[{index}]"
            yield Problem(
                field=path, found="an empty entry, which excludes everything", accepted=accepted
            )


def _harnesses(spec: RunSpec, known: Mapping[str, HarnessTraits]) -> Iterator[Problem]:
    for index, agent in enumerate(spec.matrix.agents):
        yield from _reference(f"spec.matrix.agents[{index}].harness", agent.harness, tuple(known))


def _scripts(
    spec: RunSpec, known: Mapping[str, HarnessTraits], texts: ScriptTexts
) -> Iterator[Problem]:
    for index, agent in enumerate(spec.matrix.agents):
        traits = known.get(agent.harness)
        if traits is not None:
            yield from _script(f"spec.matrix.agents[{index}]", agent, traits, texts)


def _script(
    path: str, agent: Agent, traits: HarnessTraits, texts: ScriptTexts
) -> Iterator[Problem]:
    reference = agent.script_config_map
    given = agent.script is not None or reference is not None
    if agent.script is not None and reference is not None:
        accepted = "one of script and scriptConfigMap"
        yield Problem(field=path, found="both script and scriptConfigMap", accepted=accepted)
    elif given and traits.script == "refused":
        accepted = f"no script with harness {agent.harness}"
        yield Problem(field=f"{path}.script", found="a script", accepted=accepted)
    elif not given and traits.script == "required":
        yield Problem(
            field=f"{path}.script",
            found="nothing",
            accepted=f"script or scriptConfigMap, since harness {agent.harness} needs one",
        )
    elif given:
        yield from _script_text(path, agent, texts)


def _script_text(path: str, agent: Agent, texts: ScriptTexts) -> Iterator[Problem]:
    reference, text = agent.script_config_map, _text(agent, texts)
    field = f"{path}.script" if reference is None else f"{path}.scriptConfigMap"
    if text is None:
        named = f"key {reference.key} of ConfigMap {reference.name}" if reference else "a script"
        yield Problem(field=field, found="nothing", accepted=f"an existing {named}")
        return
    for problem in script_problems(text):
        yield Problem(field=field, found=problem, accepted="steps of the scripted harness")


def _unknown_units(
    spec: RunSpec, tasks: Sequence[RunTask], scripts: Mapping[str, str]
) -> Iterator[Problem]:
    """Gold patches that a script applies and no task has: on every task the step would fail."""
    units = sorted({unit for task in tasks for unit in task.units})
    for index, agent in enumerate(spec.matrix.agents):
        text = scripts.get(agent.name)
        for unit in gold_units(text) if text is not None else ():
            if unit not in units:
                yield Problem(
                    field=f"spec.matrix.agents[{index}].script",
                    found=f"applyDiff of unit {shown(unit)}, which no task of the run has",
                    accepted=one_of(unit, units),
                )
