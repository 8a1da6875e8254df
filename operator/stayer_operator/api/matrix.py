"""spec.matrix of a BenchmarkRun: who works, with which model, in which outer loop."""

from pydantic import ConfigDict, Field

from stayer_operator.api.base import (
    ApiModel,
    EntryName,
    Glob,
    ModelName,
    ObjectName,
    cel,
    map_list,
    rules,
)


class EnvVar(ApiModel):
    """An environment variable of the agent's processes."""

    name: str = Field(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the variable.",
    )
    value: str = Field(
        default="",
        max_length=4096,
        description="Value, taken as it is. It stands in the evidence: no place for secrets.",
    )


class ScriptReference(ApiModel):
    """A key of a ConfigMap in the run's namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: str = Field(
        min_length=1,
        max_length=253,
        pattern=r"^[A-Za-z0-9._-]+$",
        description="Key whose value is the script.",
    )


class Agent(ApiModel):
    """One agent."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "!(has(self.script) && has(self.scriptConfigMap))",
                "script and scriptConfigMap are both set; accepted: one of them",
                found=("agent %s", "self.name"),
            )
        )
    )

    name: EntryName = Field(
        description="Name of the agent in this run; shown in tables and part of every trial's "
        "identity."
    )
    harness: EntryName = Field(
        description="The program that works. oracle: applies the task's gold patches in reference "
        "order. nop: does nothing. scripted: does what `script` says, exactly and repeatably. An "
        "unknown harness is refused by the condition Accepted, which lists the known ones."
    )
    script: str | None = Field(
        default=None,
        min_length=1,
        max_length=65536,
        description="YAML steps of the scripted harness (applyDiff, writeFile, run, wait, exit, "
        "hang), for round 1 (`steps`) or by round (`rounds`).",
    )
    script_config_map: ScriptReference | None = Field(
        default=None,
        description="Takes the script from a ConfigMap; its content must not change once trials "
        "exist.",
    )
    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=64,
        description="Environment variables for the agent's processes.",
        json_schema_extra=map_list("name"),
    )


class Model(ApiModel):
    """One model."""

    name: ModelName = Field(
        description="Name of the model; `none` for agents that ask no model. Counted by "
        "spec.modelLimits."
    )


class LoopProfileSpec(ApiModel):
    """One outer-loop profile: how often the agent is started again on the same workspace."""

    name: EntryName = Field(description="Name of the profile in this run.")
    outer_loop_count: int = Field(
        default=3,
        ge=0,
        le=1000,
        description="Rounds at most. Each is a fresh process on the same workspace with what is "
        "left of the time limit, shared over the rounds that are left; 0 = as many as the time "
        "limit allows.",
    )
    rate_limit_retries_per_round: int = Field(
        default=5,
        ge=0,
        le=100,
        description="How often a round goes on after the provider refused for too many requests.",
    )
    rate_limit_backoff_seconds: int = Field(
        default=45,
        ge=1,
        le=3600,
        description="First wait after such a refusal; doubled each time. It spends the time limit.",
    )


class ExcludedCells(ApiModel):
    """Cells to leave out: those that match every field that is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.task) || has(self.agent) || has(self.model) || has(self.loopProfile)",
                "excludes everything; accepted: at least one of task, agent, model, loopProfile",
            )
        )
    )

    task: Glob | None = Field(default=None, description="Glob over task names.")
    agent: EntryName | None = Field(default=None, description="Name of an agent of the matrix.")
    model: ModelName | None = Field(default=None, description="Name of a model of the matrix.")
    loop_profile: EntryName | None = Field(
        default=None, description="Name of a loop profile of the matrix."
    )


class IncludedCells(ApiModel):
    """Cells to add after `exclude` has been applied."""

    task: Glob = Field(description="Glob over the names of the run's tasks.")
    agent: EntryName = Field(description="Name of an agent of the matrix.")
    model: ModelName | None = Field(
        default=None, description="Name of a model of the matrix; left out: every one."
    )
    loop_profile: EntryName | None = Field(
        default=None, description="Name of a loop profile of the matrix; left out: every one."
    )
    attempts: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Attempts of these cells, where more than spec.attempts.",
    )


class Cells(ApiModel):
    """Cells of an explicit list."""

    agent: EntryName = Field(description="Name of an agent of the matrix.")
    model: ModelName | None = Field(
        default=None, description="Name of a model of the matrix; left out: every one."
    )
    loop_profile: EntryName | None = Field(
        default=None, description="Name of a loop profile of the matrix; left out: every one."
    )
    tasks: tuple[Glob, ...] = Field(
        default=("*",),
        min_length=1,
        max_length=32,
        description="Globs over the names of the run's tasks.",
    )


class Matrix(ApiModel):
    """The cells of a run."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "size(self.cells) == 0 || (size(self.include) == 0 && size(self.exclude) == 0)",
                "cells is an explicit list and include/exclude change the product; accepted: "
                "cells alone, or include and exclude without cells",
                found=(
                    "%d cells, %d include, %d exclude",
                    "size(self.cells)",
                    "size(self.include)",
                    "size(self.exclude)",
                ),
            )
        )
    )

    agents: tuple[Agent, ...] = Field(
        min_length=1,
        max_length=32,
        description="The agents to compare; at least one. Once trials exist entries can be added, "
        "not changed or removed.",
        json_schema_extra=map_list("name"),
    )
    models: tuple[Model, ...] = Field(
        default=(Model(name="none"),),
        min_length=1,
        max_length=32,
        description="The models to compare. Left out: one entry named none, for agents that ask "
        "no model. Once trials exist entries can be added, not changed or removed.",
        json_schema_extra=map_list("name"),
    )
    loop_profiles: tuple[LoopProfileSpec, ...] = Field(
        default=(LoopProfileSpec(name="outer-loop"),),
        min_length=1,
        max_length=16,
        description="The outer loops to compare. Left out: one entry named outer-loop with three "
        "rounds. Once trials exist entries can be added, not changed or removed.",
        json_schema_extra=map_list("name"),
    )
    include: tuple[IncludedCells, ...] = Field(
        default=(),
        max_length=64,
        description="Cells added to the product after `exclude`, or given more attempts. Once "
        "trials exist entries can be added, not removed.",
    )
    exclude: tuple[ExcludedCells, ...] = Field(
        default=(),
        max_length=64,
        description="Cells taken out of the product. Once trials exist entries can be removed, "
        "not added.",
    )
    cells: tuple[Cells, ...] = Field(
        default=(),
        max_length=64,
        description="An explicit list of cells instead of the product; its names refer to the "
        "entries of agents, models and loopProfiles. Cannot be combined with include and exclude. "
        "Once trials exist entries can be added, not removed.",
    )
