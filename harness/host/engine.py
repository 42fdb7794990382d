"""The container engine of this machine: whether one answers, and toolset/provision/docker-engine, which brings one."""

import os
import shutil
import subprocess

from harness.paths import DOCKER, TOOLSET

SCRIPT = TOOLSET / "provision" / "docker-engine"
INSTALL = (str(SCRIPT), "install")
START = (str(SCRIPT), "start")
STOP = (str(SCRIPT), "stop")
BASE_IMAGE = (str(DOCKER / "bootstrap-base"),)

MEND = "as root on Debian or Ubuntu: toolset/provision/docker-engine install, then start; else Docker with compose v2"


def answers() -> bool:
    """Whether an engine answers that this user may ask."""
    if shutil.which("docker") is None:
        return False
    command = ("docker", "version", "--format", "{{.Server.Version}}")
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def can_be_brought() -> bool:
    """Whether ``docker-engine install`` has what it takes: apt, and the right to use it."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0
