"""The base of every wire model."""

from typing import ClassVar, Self

import orjson
from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable document. JSON names are the field names; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    in_order: ClassVar[frozenset[str]] = frozenset()
    """Fields of dataclasses whose own fields stand sorted by name: written without a copy."""

    def to_bytes(self) -> bytes:
        """Canonical JSON: sorted keys, no spaces, UTF-8; equal records give equal bytes."""
        fields = self.model_dump(mode="json", exclude=set(self.in_order))
        fields |= {name: getattr(self, name) for name in self.in_order}
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The record of `to_bytes`. Raises pydantic.ValidationError for anything else."""
        return cls.model_validate_json(data)
