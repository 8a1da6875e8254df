"""Parts of the specs that shape pods."""

from typing import Annotated, Literal

from pydantic import Field

from stayer_operator.api.base import SET_LIST, ApiModel, ObjectName

Quantity = Annotated[str | int, Field(json_schema_extra={"x-kubernetes-int-or-string": True})]
LabelText = Annotated[str, Field(max_length=253)]


class Resources(ApiModel):
    """Resources of the task container."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict,
        max_length=16,
        description="What the scheduler sets aside, by resource name, as in a pod. Names left out "
        "take Stayer's small defaults.",
    )
    limits: dict[str, Quantity] = Field(
        default_factory=dict,
        max_length=16,
        description="What the container may use at most, by resource name, as in a pod. Memory "
        "or disk beyond its own limit ends a trial as the agent's fault.",
    )


class Toleration(ApiModel):
    """A toleration, as in a pod."""

    key: LabelText | None = Field(default=None, description="Key of the taint; empty: every key.")
    operator: Literal["Equal", "Exists"] = Field(
        default="Equal", description="Whether the value must be equal or the key only exist."
    )
    value: LabelText | None = Field(default=None, description="Value of the taint, with Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint; left out: every effect."
    )
    toleration_seconds: int | None = Field(
        default=None, ge=0, description="With NoExecute: how long the pod stays."
    )


class PodTemplate(ApiModel):
    """What a run may set on the pods of one role."""

    resources: Resources = Field(
        default_factory=Resources, description="Requests and limits of the task container."
    )
    node_selector: dict[str, LabelText] = Field(
        default_factory=dict,
        max_length=32,
        description="Labels that a node must have.",
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=32, description="Taints that the pod tolerates."
    )
    runtime_class_name: ObjectName | None = Field(
        default=None, description="RuntimeClass of the pod, for instance a sandboxed one."
    )


class PodTemplates(ApiModel):
    """Both roles."""

    agent: PodTemplate = Field(
        default_factory=PodTemplate, description="The pod in which the agent works."
    )
    adjudicator: PodTemplate = Field(
        default_factory=PodTemplate, description="The pod in which snapshots are tested."
    )


class Images(ApiModel):
    """How images are pulled."""

    pull_secrets: tuple[ObjectName, ...] = Field(
        default=(),
        max_length=16,
        description="Names of image pull Secrets in the run's namespace.",
        json_schema_extra=SET_LIST,
    )
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        default="IfNotPresent",
        description="Pull policy of the task's image; it is named by digest, so IfNotPresent is "
        "enough.",
    )
