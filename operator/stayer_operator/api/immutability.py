"""CEL rules at the root of a BenchmarkRun: its name, and what must not change once trials exist.

They stand at the root because only there spec and status are seen together; `status.pinned` is
written just before the first trial is created (docs/decisions/0010-immutable-once-trials-exist.md).
"""

from stayer_operator.api.base import cel
from stayer_operator.api.names import RUN_NAME_LIMIT

_UNPINNED = "!has(oldSelf.status) || !has(oldSelf.status.pinned)"
_WHY = "is immutable once trials exist, since it changes what results mean; accepted: "


def _pinned(rule: str, message: str, *, found: tuple[str, ...] = (), field: str) -> dict[str, str]:
    return cel(f"{_UNPINNED} || {rule}", message, found=found, field=field)


def _scalar(name: str) -> dict[str, str]:
    return _pinned(
        f"self.spec.{name} == oldSelf.spec.{name}",
        f"spec.{name} {_WHY}the value before, or a new run",
        found=("%s, before: %s", f"self.spec.{name}", f"oldSelf.spec.{name}"),
        field=f".spec.{name}",
    )


def _object(name: str) -> dict[str, str]:
    return _pinned(
        f"self.spec.{name} == oldSelf.spec.{name}",
        f"spec.{name} {_WHY}no change, or a new run",
        field=f".spec.{name}",
    )


def _entries(name: str) -> dict[str, str]:
    """A keyed list of the matrix: merging the old entries over the new ones changes nothing."""
    path = f"spec.matrix.{name}"
    return _pinned(
        f"self.{path} + oldSelf.{path} == self.{path}",
        f"an entry of {path} {_WHY}the old entries unchanged, and new ones",
        found=(
            "%s changed or removed",
            f"oldSelf.{path}.filter(o, !(o in self.{path})).map(o, o.name)",
        ),
        field=f".{path}",
    )


def _superset(bigger: str, smaller: str, name: str, accepted: str) -> dict[str, str]:
    return _pinned(
        f"{smaller}.spec.matrix.{name}.all(e, e in {bigger}.spec.matrix.{name})",
        f"spec.matrix.{name} takes cells away, which is refused once trials exist; accepted: "
        f"{accepted}",
        field=f".spec.matrix.{name}",
    )


def root_rules() -> list[dict[str, str]]:
    """Every rule at the root of a BenchmarkRun."""
    return [
        cel(
            f"size(self.metadata.name) <= {RUN_NAME_LIMIT} && !self.metadata.name.contains('.')",
            f"metadata.name is too long or holds a dot; accepted: at most {RUN_NAME_LIMIT} "
            "characters of a-z, 0-9 and -, since trials and pods are named after it",
            found=("%s, %d characters", "self.metadata.name", "size(self.metadata.name)"),
        ),
        *(_scalar(name) for name in ("benchmark", "testVisibility", "network", "userNamespaces")),
        *(_object(name) for name in ("tasks", "timeouts", "snapshots")),
        *(_entries(name) for name in ("agents", "models", "loopProfiles")),
        _superset("self", "oldSelf", "include", "the old entries and new ones"),
        _superset("self", "oldSelf", "cells", "the old entries and new ones"),
        _superset("oldSelf", "self", "exclude", "old entries only"),
        _pinned(
            "(size(self.spec.matrix.cells) == 0) == (size(oldSelf.spec.matrix.cells) == 0)",
            "spec.matrix.cells and the product cannot be exchanged once trials exist; accepted: "
            "the form used before",
            field=".spec.matrix.cells",
        ),
        _pinned(
            "self.spec.attempts >= oldSelf.spec.attempts",
            "spec.attempts may only grow once trials exist; accepted: the number before or more",
            found=("%d, before: %d", "self.spec.attempts", "oldSelf.spec.attempts"),
            field=".spec.attempts",
        ),
        _pinned(
            "oldSelf.spec.attemptsByTask.all(o, self.spec.attemptsByTask.exists(n, n.task == "
            "o.task && n.attempts >= o.attempts))",
            "spec.attemptsByTask may only grow once trials exist; accepted: the old entries with "
            "the same or more attempts, and new ones",
            field=".spec.attemptsByTask",
        ),
    ]
