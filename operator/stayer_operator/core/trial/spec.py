"""The parts of a Trial's spec that planning and pod building use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.api import names


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialIdentity:
    """Which Trial it is."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """What was resolved when the Trial was made; immutable."""

    kind: TrialKind
    run: str
    run_uid: str
    task: str
    task_digest: str
    image: str
    prefix: str
    document_sha256: str
    agent: str | None = None
    model: str | None = None
    loop: str | None = None
    attempt: int = 1
    agent_seconds: int = 1800
    test_seconds: int = 3600
    drain_seconds: int = 7200
    on_agent_loss: Literal["resume", "restart", "fail"] = "resume"
    infra_retries: int = 5
    network: str = "closed"
    user_namespaces: str = "required"
    test_visibility: str = "attached"
    pull_secrets: tuple[str, ...] = ()
    pull_policy: str = "IfNotPresent"
    templates: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The pods that this trial has."""
        if self.kind is TrialKind.INVENTORY:
            return (Role.ADJUDICATOR,)
        return (Role.AGENT, Role.ADJUDICATOR)

    def template(self, role: Role) -> Mapping[str, Any]:
        """The run's podTemplate of a role; empty where it has none."""
        return self.templates.get(names.ROLE_LABELS[role]) or {}


def parse_trial_spec(spec: Mapping[str, Any]) -> TrialSpec:
    """The spec of a Trial as the API holds it. The schema guards types; absent fields get the
    defaults above.
    """
    task, timeouts = spec.get("task") or {}, spec.get("timeouts") or {}
    document, images = spec.get("document") or {}, spec.get("images") or {}
    optional = {
        "attempt": spec.get("attempt"),
        "agent_seconds": timeouts.get("agentSeconds"),
        "test_seconds": timeouts.get("testSeconds"),
        "drain_seconds": timeouts.get("drainSeconds"),
        "on_agent_loss": spec.get("onAgentLoss"),
        "infra_retries": spec.get("infraRetries"),
        "network": spec.get("network"),
        "user_namespaces": spec.get("userNamespaces"),
        "test_visibility": spec.get("testVisibility"),
        "pull_policy": images.get("pullPolicy"),
        "templates": spec.get("podTemplates"),
    }
    return TrialSpec(
        kind=TrialKind(spec.get("kind") or TrialKind.ATTEMPT),
        run=spec.get("runName", ""),
        run_uid=spec.get("runUID", ""),
        task=task.get("name", ""),
        task_digest=task.get("digest", ""),
        image=task.get("image", ""),
        prefix=spec.get("prefix", ""),
        document_sha256=document.get("sha256", ""),
        agent=spec.get("agent") or None,
        model=spec.get("model") or None,
        loop=spec.get("loopProfile") or None,
        pull_secrets=tuple(_secret_name(secret) for secret in images.get("pullSecrets") or ()),
        **{name: value for name, value in optional.items() if value is not None},
    )


def _secret_name(secret: Any) -> str:
    """Written as a plain name or, as pods have it, as {name: ...}."""
    return str(secret.get("name", "")) if isinstance(secret, Mapping) else str(secret)
