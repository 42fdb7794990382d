"""Paths of the project's files, in a clone or in an installed wheel."""

import os
from pathlib import Path

_PACKAGED = Path(__file__).resolve().parent / "_tree"  # the files of the repository that a wheel includes
INSTALLED = _PACKAGED.is_dir()
PROGRAM = "tfb" if INSTALLED else "./tfb"  # the command that users type
REPOSITORY = _PACKAGED if INSTALLED else Path(__file__).resolve().parent.parent
CONFIG = REPOSITORY / "config"
DOCKER = REPOSITORY / "docker"
FRAMEWORKS = (Path.cwd() if INSTALLED else REPOSITORY) / "frameworks"  # a wheel contains no implementations
PROFILES = CONFIG / "profiles"
CLAIMS = CONFIG / "claims"
RESULTS = Path.cwd() / "tfb-results" if INSTALLED else REPOSITORY / "results"
TOOLSET = REPOSITORY / "toolset"
BUILT_FROM = REPOSITORY / "COMMIT"  # in a wheel only: output of git describe at build time
CONFIG_FILE = "benchmark_config.json"  # name of the configuration file in an implementation's folder
PREBUILT = "built"  # folder for compiled programs in a wheel's toolset


def state_folder() -> Path:
    """Return the folder for builds and caches.

    The variable TFB_STATE overrides the default: .tfb in a clone, or tfb in the user's XDG state folder for a wheel.
    """
    if chosen := os.environ.get("TFB_STATE"):
        return Path(chosen).resolve()
    if not INSTALLED:
        return REPOSITORY / ".tfb"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state").resolve() / "tfb"


def build_caches_folder() -> Path:
    """Return the folder in which ``compare`` caches a service's dependencies between builds."""
    return state_folder() / "build-caches"
