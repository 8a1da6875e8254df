"""status.pinned: digests of what must not change once trials exist.

The CEL rules at the CRD's root refuse such changes at once; the pins catch what CEL cannot see (a
ConfigMap with other content, an object changed before the status was written).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from stayer_operator.api.names import digest10
from stayer_operator.api.run import RunSpec
from stayer_operator.api.wording import counted
from stayer_operator.core.run.cells import AttemptKey
from stayer_operator.core.run.problems import Problem

_FIELDS = {
    "benchmark": "benchmark",
    "tasks": "tasks",
    "timeouts": "timeouts",
    "snapshots": "snapshots",
    "testVisibility": "test_visibility",
    "network": "network",
    "userNamespaces": "user_namespaces",
}


def pins(spec: RunSpec, task_list: bytes, scripts: Mapping[str, str]) -> dict[str, str]:
    """Field -> digest. Entries of the matrix have keys of their own, so that some can be added."""
    matrix = spec.matrix
    entries: dict[str, Any] = {
        **{f"spec.{name}": getattr(spec, attribute) for name, attribute in _FIELDS.items()},
        "task list": hashlib.sha256(task_list).hexdigest(),
        **{f"spec.matrix.models/{entry.name}": entry for entry in matrix.models},
        **{f"spec.matrix.loopProfiles/{entry.name}": entry for entry in matrix.loop_profiles},
        **{
            f"spec.matrix.agents/{entry.name}": [_plain(entry), scripts.get(entry.name)]
            for entry in matrix.agents
        },
    }
    return {field: digest10(_canonical(value)) for field, value in entries.items()}


def changed_fields(pinned: Mapping[str, str], current: Mapping[str, str]) -> tuple[Problem, ...]:
    """What was pinned and is now different or gone."""
    return tuple(
        Problem(
            field=field,
            found="another value than when the first trial was created"
            if field in current
            else "that the entry was removed",
            accepted="no change once trials exist, since it changes what results mean",
        )
        for field, digest in sorted(pinned.items())
        if current.get(field) != digest
    )


def lost_attempts(
    existing: Sequence[AttemptKey], planned: frozenset[AttemptKey]
) -> tuple[Problem, ...]:
    """Attempts that have Trials and are no longer asked for."""
    lost = sorted(key for key in existing if key not in planned)
    if not lost:
        return ()
    first = lost[0]
    return (
        Problem(
            field="spec.matrix and spec.attempts",
            found=f"{counted(len(lost), 'attempt')} with trials left out, for instance attempt "
            f"{first.attempt} of {first.agent}/{first.model}/{first.loop} on {first.task}",
            accepted="the cells and attempts before, and more",
        ),
    )


def _plain(value: Any) -> Any:
    """Without defaults, so that a field which a later version adds changes no digest."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return value


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)
