"""The base class of all records, and the version of their files.

All numbers are SI floats (seconds, bytes, requests per second). An unknown value is ``None``, never 0 or -1.
Reading ignores unknown keys and refuses a run with another schema version. Files name a field by its alias, which
includes the unit; documents of the dashboard use the field's name.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.redaction import redacted_json

SCHEMA_VERSION = 4

# Python cannot divide integers with more than 308 digits, and JSON does not limit the length of integers.
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]

EpochSeconds = Annotated[float, Field(ge=-1e11, le=1e11)]  # within the years that datetime supports


class Record(BaseModel):
    """Base class of all records: frozen, with finite numbers only; unknown keys are ignored."""

    # defer_build: validators are built at first use. JSON cannot express infinity and NaN: pydantic writes null.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True, allow_inf_nan=False)

    def to_json(self, indent: int | None = None) -> str:
        """Return the JSON for files and command output, with declared secrets redacted."""
        return redacted_json(self.model_dump_json(indent=indent, by_alias=True))
