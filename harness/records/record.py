"""The base class of all records, and the version of their files.

All numbers are SI floats (seconds, bytes, requests per second). An unknown value is ``None``, never 0 or -1.
Reading ignores unknown keys and refuses a run with another schema version. Files name a field by its alias, which
includes the unit; documents of the dashboard use the field's name.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.redaction import redacted_json

SCHEMA_VERSION = 4

# JSON has integers of any length, and Python cannot divide those of more than 308 digits.
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]

EpochSeconds = Annotated[float, Field(ge=-1e11, le=1e11)]  # epoch seconds; a calendar knows no later ones


class Record(BaseModel):
    """Base of all records: frozen, unknown keys ignored, every number finite."""

    # Built when used. JSON has no infinity and no NaN: one in a record would be written as null.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True, allow_inf_nan=False)

    def to_json(self, indent: int | None = None) -> str:
        """Return the JSON that stands in files and that commands print, without declared secrets."""
        return redacted_json(self.model_dump_json(indent=indent, by_alias=True))
