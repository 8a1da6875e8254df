"""The metadata of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """Which run it is, and which state of it was observed."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleting: bool

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "RunIdentity":
        """From a raw object that the API server sent."""
        metadata = manifest["metadata"]
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata.get("resourceVersion", ""),
            generation=metadata.get("generation", 0),
            deleting=bool(metadata.get("deletionTimestamp")),
        )
