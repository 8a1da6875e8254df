"""What a spec says of pods that many trials have in common.

Builders of the shared parts see this and no trial: what they build is right for all pods that have
the same traits, and is built once.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.core.trial.spec import TrialSpec


class Traits(NamedTuple):
    """Of the pods of one role. `template` is the run's podTemplate as JSON."""

    kind: TrialKind
    network: str
    user_namespaces: str
    pull_policy: str
    pull_secrets: tuple[str, ...]
    template: bytes

    @classmethod
    def of(cls, spec: TrialSpec, role: Role) -> "Traits":
        """The traits of a trial's pods of that role."""
        return cls(
            spec.kind,
            spec.network,
            spec.user_namespaces,
            spec.pull_policy,
            spec.pull_secrets,
            orjson.dumps(spec.template(role)),
        )

    def read_template(self) -> Mapping[str, Any]:
        """The run's podTemplate; empty where it has none."""
        template: Mapping[str, Any] = orjson.loads(self.template)
        return template
