"""The base class of all records, and the schema version of record files.

All numbers are in SI units (seconds, bytes, requests per second). An unknown value is ``None``, never 0 or -1. Readers
ignore unknown keys and reject a run with a newer schema version. In files, the keys are the fields' aliases, which
include the unit. In the dashboard's documents, the keys are the fields' names.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.redaction import redacted_json

SCHEMA_VERSION = 4

# Limited, because JSON allows integers of any length, but Python cannot divide integers of more than 308 digits.
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]

EpochSeconds = Annotated[float, Field(ge=-1e11, le=1e11)]  # limited, because datetime supports no year after 9999


class Record(BaseModel):
    """Base class of all records, which are immutable."""

    # defer_build creates validators lazily. Infinity and NaN are forbidden, because pydantic would write them as null.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True, allow_inf_nan=False)

    def to_json(self, indent: int | None = None) -> str:
        """Serialise the record for files and command output. Redact declared secrets."""
        return redacted_json(self.model_dump_json(indent=indent, by_alias=True))
