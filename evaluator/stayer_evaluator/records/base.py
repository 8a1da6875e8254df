"""The base of every wire model."""

from typing import Self

import orjson
from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable document. JSON names are the field names; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_bytes(self) -> bytes:
        """Canonical JSON: sorted keys, no spaces, UTF-8; equal records give equal bytes."""
        return orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The record of `to_bytes`. Raises pydantic.ValidationError for anything else."""
        return cls.model_validate_json(data)
