"""Where the project's own files lie, whatever folder a command is called from: in a clone, or within a wheel."""

import os
from pathlib import Path

_PACKAGED = Path(__file__).resolve().parent / "_tree"  # what a wheel brings of the repository
INSTALLED = _PACKAGED.is_dir()
PROGRAM = "tfb" if INSTALLED else "./tfb"  # how it is called
REPOSITORY = _PACKAGED if INSTALLED else Path(__file__).resolve().parent.parent
CONFIG = REPOSITORY / "config"
DOCKER = REPOSITORY / "docker"
FRAMEWORKS = REPOSITORY / "frameworks"
PROFILES = CONFIG / "profiles"
CLAIMS = REPOSITORY / "config" / "claims"
RESULTS = Path.cwd() / "tfb-results" if INSTALLED else REPOSITORY / "results"
TOOLSET = REPOSITORY / "toolset"
CONFIG_FILE = "benchmark_config.json"  # in the folder of an implementation
PREBUILT = "built"  # folder of a wheel's toolset with programs that it brings


def state_folder() -> Path:
    """Where built things are kept: TFB_STATE, .tfb in a clone, else where the system keeps users' state (XDG)."""
    if chosen := os.environ.get("TFB_STATE"):
        return Path(chosen).resolve()
    if not INSTALLED:
        return REPOSITORY / ".tfb"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state").resolve() / "tfb"
