"""A lab: sets of machines, each of which runs blocks by itself (``lab.toml``, shown in docs/machines.md)."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import ConfigError
from harness.records import bounded


class MachineSet(BaseModel):
    """One set: where its blocks are driven from, and the flags that name its machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    login: str | None = None  # ssh name of the machine that drives it (Slurm: its node name); None: this machine
    flags: tuple[str, ...] = ()  # of every run on it, such as --server-host app


class Lab(BaseModel):
    """All sets."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    sets: tuple[MachineSet, ...] = Field(alias="set", min_length=1)
    directory: str = "tfb"  # of the checkout on every login, below the home folder unless absolute
    partition: str | None = None  # of Slurm

    @model_validator(mode="after")
    def _unique(self) -> "Lab":
        for what, values in (
            ("name", [machines.name for machines in self.sets]),
            ("login", [machines.login for machines in self.sets if machines.login]),
        ):
            if twice := {value for value in values if values.count(value) > 1}:
                raise ValueError(f"two sets have the {what} {min(twice)!r}: each drives its own machines")
        return self

    def by_login(self, login: str) -> MachineSet | None:
        """The set that this machine drives; a login may hold GNU parallel's number of jobs (``1/name``)."""
        wanted = login.rpartition("/")[2]
        return next((machines for machines in self.sets if machines.login == wanted), None)


def load(path: Path) -> Lab:
    """Read a lab; raises ConfigError that names file, key and what is allowed."""
    try:
        return Lab.model_validate(bounded.toml(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; docs/machines.md shows a lab.toml") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}; docs/machines.md shows a lab.toml") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
