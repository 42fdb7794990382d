"""Lists the tools that a run requires, and installs missing tools with apt."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host import process
from harness.paths import TOOLSET
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Consent
from harness.provisioning import advice, crates, step, toolchain
from harness.provisioning.toolchain import Tool

INSTALL_SECONDS = 900.0
ENGINE_SCRIPT = TOOLSET / "provision" / "docker-engine"
ENGINE_INSTALL = (str(ENGINE_SCRIPT), "install")
ENGINE_START = (str(ENGINE_SCRIPT), "start")
ENGINE_STOP = (str(ENGINE_SCRIPT), "stop")
ENGINE_REMEDY = (
    "on Debian or Ubuntu, run toolset/provision/docker-engine install as root, then toolset/provision/docker-engine "
    "start; elsewhere, install Docker with compose v2"
)

SERVICE_PACKAGES = frozenset({"nginx", "openssh-server", "php-fpm"})  # Debian packages that start a server
SERVICE_MANAGER = Path("/run/systemd/system")  # exists if systemd is running
SERVICE_REASON = "; tfb does not install it, because the package also starts a server"


@dataclass(frozen=True, kw_only=True)
class ToolRequirement:
    """A tool that tfb or an implementation requires, with the installed tool that meets the requirement."""

    kind: str
    condition: str
    required_by: tuple[str, ...]  # names of implementations; empty if tfb itself requires the tool
    tool: Tool | None  # None: no suitable tool is installed

    @property
    def description(self) -> str:
        """Return the tool and the condition as shown in messages, for example ``java >=25``."""
        return advice.describe_requirement(self.kind, self.condition)


def tool_requirements(
    implementations: Iterable[Implementation],
    *,
    own_database: bool,
    wrk: bool = True,
    loads: bool = True,
    witnesses: bool = False,
) -> tuple[ToolRequirement, ...]:
    """Return the tools that a run with the local runtime requires.

    ``own_database`` adds PostgreSQL, and ``wrk`` adds wrk. ``witnesses`` adds the other independent load generators for
    the selected test types. ``loads`` adds cargo if one of the required load generators has not been built.
    """
    implementations = tuple(implementations)
    protocols = {kind.protocol for each in implementations for kind in each.selected_types if witnesses}
    requirements: dict[tuple[str, str], list[str]] = {("wrk", ">=4.1"): []} if wrk else {}
    if "http2" in protocols:
        requirements["h2load", ">=1.40"] = []
    built_crates = ("loadgen", *(("websocket-witness",) if "websocket" in protocols else ()))
    if loads and any(crates.find_built(crate, crate) is None for crate in built_crates):
        requirements["cargo", ">=1.85"] = []
    if own_database:
        requirements["postgres", ">=12"] = []
    for implementation in implementations:
        if implementation.local:
            for kind, condition in implementation.local.requires.items():
                requirements.setdefault((kind, condition), []).append(implementation.name)
    return tuple(
        ToolRequirement(
            kind=kind, condition=condition, required_by=tuple(names), tool=toolchain.find_tool(kind, condition)
        )
        for (kind, condition), names in requirements.items()
    )


def missing_packages(requirements: Sequence[ToolRequirement]) -> tuple[str, ...]:
    """Return the Debian packages of missing tools that ``install_missing`` can install."""
    missing = (each for each in requirements if each.tool is None and _can_install(each))
    return tuple(sorted({name for each in missing for name in toolchain.debian_packages(each.kind, each.condition)}))


def manual_steps(requirements: Sequence[ToolRequirement]) -> tuple[str, ...]:
    """Return installation instructions for missing tools that ``install_missing`` cannot install."""
    missing = (each for each in requirements if each.tool is None and not _can_install(each))
    return tuple(
        advice.describe_missing(each.kind, each.condition) + (SERVICE_REASON if _starts_service(each) else "")
        for each in missing
    )


def _can_install(missing: ToolRequirement) -> bool:
    return advice.available_from_apt(missing.kind, missing.condition) and not _starts_service(missing)


def _starts_service(missing: ToolRequirement) -> bool:
    """Return whether installing a tool would start a server on this machine, now and after each boot."""
    return SERVICE_MANAGER.is_dir() and not SERVICE_PACKAGES.isdisjoint(
        toolchain.debian_packages(missing.kind, missing.condition)
    )


def install_missing(requirements: Sequence[ToolRequirement], consent: Consent, log: Path) -> tuple[str, ...]:
    """Install missing Debian packages if the user consents. Return messages for the user.

    After an installation, discard the cached list of installed tools.
    """
    missing = [each for each in requirements if each.tool is None]
    if not missing:
        return ()
    apt = shutil.which("apt-get")
    if apt is None:
        return tuple(advice.describe_missing(each.kind, each.condition) for each in missing)
    root = () if os.geteuid() == 0 or not (sudo := shutil.which("sudo")) else (sudo, "-n")
    if consent != "yes":
        to_install = f"To install: {'sudo ' if root else ''}apt-get install {' '.join(missing_packages(missing))}"
        return (*([to_install] if missing_packages(missing) else []), *manual_steps(missing))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with step("update the package list (apt-get)"):
        process.run([*root, apt, "update"], seconds=INSTALL_SECONDS, env=environment, log=log)
    advice.apt_version.cache_clear()
    _prevent_default_cluster()
    notes = [*manual_steps(missing)]
    for package in missing_packages(missing):
        # Install each package with a separate command, so that a failure does not affect other packages.
        command = [*root, apt, "install", "-y", "--no-install-recommends", "--no-remove", "--", package]
        with step(f"install {package} (apt-get)"):
            status = process.run(command, seconds=INSTALL_SECONDS, env=environment, log=log).status
        notes.append(f"installed {package}" if status == 0 else f"apt-get install {package} failed; see {log}")
    toolchain.forget_tools()
    return tuple(notes)


def _prevent_default_cluster() -> None:
    """Prevent Debian's PostgreSQL package from starting a server when it is installed: tfb starts its own server."""
    folder = Path("/etc/postgresql-common/createcluster.d")
    if os.geteuid() == 0 and not Path("/usr/share/postgresql-common").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tfb.conf").write_text("create_main_cluster = false\n", encoding="utf-8")


def select_tools(implementation: Implementation) -> Mapping[str, Tool]:
    """Return an implementation's installed tools by kind. This runs the tools, so the user must have consented."""
    requires = implementation.local.requires if implementation.local else {}
    chosen = {kind: toolchain.find_tool(kind, condition, consented=True) for kind, condition in requires.items()}
    return {kind: tool for kind, tool in chosen.items() if tool}


def engine_responds() -> bool:
    """Return whether a Docker engine responds to this user's requests."""
    if shutil.which("docker") is None:
        return False
    command = ("docker", "version", "--format", "{{.Server.Version}}")
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def can_install_engine() -> bool:
    """Return whether ``docker-engine install`` can run here. It needs apt and root."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0
