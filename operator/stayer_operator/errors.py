"""Everything that Stayer's operator raises on purpose.

StayerError
├── SettingsError           the environment or the values of the chart
├── ClusterError            the Kubernetes API answered, or did not
│   ├── AlreadyExists       409 on POST: the name is taken
│   ├── Conflict            409 on PUT/PATCH/DELETE: resourceVersion or UID is another one
│   ├── NotFound            404
│   ├── Gone                410: the watch's version is too old
│   ├── Forbidden           403: RBAC, quota or admission
│   │   └── QuotaExceeded   403 of a ResourceQuota: waiting helps
│   ├── Invalid             400 or 422: the object itself is refused
│   └── ClusterUnavailable  429, 5xx, no answer, a broken connection
└── NameTaken               an object that is not ours, or no longer usable, has our name

Trouble with the object store is `stayer_evaluator.storage.store.StoreError`. `retryable` says
whether the same request may succeed later without anybody changing anything.
"""

from __future__ import annotations


class StayerError(Exception):
    """Base of all; its text is one sentence for a person."""

    retryable = False


class SettingsError(StayerError):
    """A setting is missing or not acceptable; names it, what was found and what is accepted."""


class ClusterError(StayerError):
    """The Kubernetes API refused or did not answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        """`status` is the HTTP status, 0 where there was none."""
        super().__init__(message)
        self.status = status


class AlreadyExists(ClusterError):  # noqa: N818 (reads as what happened)
    """POST: an object of this name exists."""


class Conflict(ClusterError):  # noqa: N818
    """The object is not the one that was meant: another resourceVersion or UID."""

    retryable = True  # after the informer has caught up


class NotFound(ClusterError):  # noqa: N818
    """No such object."""


class Gone(ClusterError):  # noqa: N818
    """The version asked for is compacted away; list again."""

    retryable = True


class Forbidden(ClusterError):  # noqa: N818
    """RBAC or an admission plugin says no."""

    retryable = True  # somebody may change a role, a policy or a quota


class QuotaExceeded(Forbidden):
    """A ResourceQuota is used up."""


class Invalid(ClusterError):  # noqa: N818
    """The API server refuses the object as it is."""


class ClusterUnavailable(ClusterError):  # noqa: N818
    """Overloaded, failing or not reachable. Whether a write happened is not known."""

    retryable = True


class NameTaken(StayerError):  # noqa: N818
    """The name of an object that we want is held by one that we may not use; it must go first."""

    retryable = True
