"""Where the project's own files lie, whatever folder a command is called from."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIG = REPOSITORY / "config"
DOCKER = REPOSITORY / "docker"
FRAMEWORKS = REPOSITORY / "frameworks"
PROFILES = CONFIG / "profiles"
CLAIMS = REPOSITORY / "config" / "claims"
RESULTS = REPOSITORY / "results"
TOOLSET = REPOSITORY / "toolset"
