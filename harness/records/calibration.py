"""The noise floors that ``./tfb calibrate`` measured on this machine, kept beside the runs."""

from pathlib import Path

from pydantic import ValidationError

from harness.records import bounded
from harness.records.models import Machine, NoiseFloor

FOLDER = ".calibration"
MOST_BYTES = 1 << 20


def path(results: Path, profile: str, machine: Machine) -> Path:
    """Where the floor of this machine and profile is kept."""
    cpus = len(machine.cpus_usable)
    return results / FOLDER / f"{machine.hostname}-{cpus}cpu-{profile}.json"


def latest(results: Path, profile: str, machine: Machine) -> NoiseFloor | None:
    """The floor that was measured last for this machine and profile, or None."""
    try:
        return NoiseFloor.model_validate_json(bounded.read(path(results, profile, machine), MOST_BYTES))
    except (OSError, ValidationError):
        return None


def keep(results: Path, machine: Machine, floor: NoiseFloor) -> Path:
    """Write a floor; returns its file."""
    target = path(results, floor.profile, machine)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(floor.recorded(indent=1) + "\n", encoding="utf-8")
    return target
