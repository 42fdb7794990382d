"""Gathers evidence for ``checks/conduct.py`` from the implementation's files and the server's processes."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import psutil

from harness.paths import CONFIG_FILE
from harness.plan import dockerfile
from harness.plan.discovery import is_own_tree
from harness.plan.implementation import Implementation
from harness.records import safe_read
from harness.records.verification_record import VerificationRecord, worst_outcome
from harness.runtime import Server
from harness.verify.checks import CONDUCT
from harness.verify.checks.evidence import ConductFacts, Evidence, FolderFacts
from harness.verify.verification import run_checks

ROOT_USERS = {"root", "0", "0:0", "root:root"}
INIT_PROCESSES = {"docker-init", "tini", "catatonit"}  # container init processes, which may run as root
UNFILLED_LINE = re.compile(r"^[^`\n]{1,80}: …\s*$", re.MULTILINE)  # a README line with "…" instead of a value


def verify_conduct(
    implementation: Implementation, conduct: ConductFacts, started_at: float
) -> VerificationRecord | None:
    """Return the verdict on a server's conduct, or None if the implementation was written for TechEmpower's toolset."""
    if implementation.local is None:
        return None  # the implementation relies on the names and containers of TechEmpower's toolset
    results = run_checks(Evidence(test_type=CONDUCT, rules=implementation.rules, conduct=conduct))
    return VerificationRecord(
        implementation=implementation.name,
        test_type=CONDUCT,
        process=0,
        thorough=True,
        outcome=worst_outcome(result.outcome for result in results),
        results=results,
        duration=time.monotonic() - started_at,
    )


def read_folder(implementation: Implementation, *, strict: bool) -> FolderFacts | None:
    """Return facts about an implementation's files, or None if the folder rules do not apply.

    The rules concern only implementations with a ``local`` block. Unless ``strict`` is set, they apply only in tfb's
    own tree.
    """
    local = implementation.local
    if local is None or not (strict or is_own_tree(implementation.folder.parent.parent)):
        return None
    text = _text(implementation.dockerfile)
    recipe = dockerfile.parse_recipe(text or "")
    command = (
        dockerfile.split_command(implementation.entry.docker_cmd) if implementation.entry.docker_cmd else recipe.command
    )
    return FolderFacts(
        config_file=CONFIG_FILE,
        dockerfile=implementation.dockerfile.name,
        dockerfile_defects=tuple(_dockerfile_defects(implementation.dockerfile, recipe, text)),
        image_command=tuple(command),
        same_command=_normalise(command) == _normalise(local.run),
        local_command=tuple(local.run),
        missing_variables=_missing_variables(
            local.env | _variables(local.run), dockerfile.environment_variables(text or "") | _variables(command)
        ),
        readme_defect=_readme_defect(_text(implementation.folder / "README.md")),
    )


def find_root_processes(server: Server) -> tuple[str, ...]:
    """Return the names of the processes in the container that run as root, except init processes."""
    names = []
    for pid in server.program.read().pids:
        with suppress(psutil.Error):  # the process may have exited in the meantime
            process = psutil.Process(pid)
            if process.uids().effective == 0 and process.name() not in INIT_PROCESSES:
                names.append(process.name())
    return tuple(names)


def _text(path: Path) -> str | None:
    try:
        return safe_read.read(path, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return None


def _without_shell(command: Sequence[str]) -> list[str]:
    """Return a command's words. For a shell with the option -c, return the words of the inner command."""
    if len(command) == 3 and PurePosixPath(command[0]).name in ("sh", "bash") and command[1] == "-c":
        return dockerfile.split_command(command[2])
    return [*command]


def _normalise(command: Sequence[str]) -> tuple[str, ...]:
    """Remove the parts in which equal commands may differ: the shell, variables, ``exec`` and the program's folder."""
    arguments = _without_shell(command)
    assignments = len(dockerfile.parse_assignments(arguments))
    arguments = arguments[assignments + (arguments[:1] == ["env"]) :] if assignments else arguments
    if arguments[:1] == ["exec"]:
        arguments = arguments[1:]
    return (PurePosixPath(arguments[0]).name, *arguments[1:]) if arguments else ()


def _variables(command: Sequence[str]) -> dict[str, str]:
    """Return the variables that a command sets for the program."""
    return dockerfile.parse_assignments(_without_shell(command))


def _missing_variables(local: Mapping[str, str], image: Mapping[str, str]) -> tuple[str, ...]:
    """Return the local runtime's variables, as NAME=value, that the image does not set to the same value.

    Values count as the same if the local value contains a path, or if the image's value refers to a variable.
    """
    return tuple(
        f"{name}={value}"
        for name, value in local.items()
        if name not in image or ("/" not in value and "$" not in image[name] and image[name] != value)
    )


def _dockerfile_defects(path: Path, recipe: dockerfile.ImageRecipe, text: str | None) -> list[str]:
    name = path.name
    if text is None:
        return [f"{name} does not exist. Create it, or set the key dockerfile to an existing file"]
    defects = []
    if absent := [source for source in recipe.source_paths if not _in_context(path.parent, source)]:
        defects.append(
            f"{name} copies {', '.join(absent)}, which the folder does not contain. Add the file, or correct COPY"
        )
    elif hidden := [source for source in recipe.source_paths if not _is_included(path, source)]:
        defects.append(
            f"{name} copies {', '.join(hidden)}, which {name}.dockerignore excludes. Add the line !{hidden[0]} to it"
        )
    if recipe.user in ROOT_USERS:
        defects.append(f"{name} ends with USER {recipe.user}. Specify an unprivileged account")
    elif recipe.user is None:
        defects.append(f"{name} has no USER, so the server may run as root. Add USER with an unprivileged account")
    return defects


def _in_context(folder: Path, source: str) -> bool:
    """Return whether the build context contains a source of COPY, which is a path, a pattern or the folder itself."""
    path = source.strip("/")
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    if path in ("", "."):
        return True
    if ".." in PurePosixPath(path).parts:
        return False  # container engines reject paths outside the build context
    try:
        return (folder / path).exists() or any(folder.glob(path))
    except (ValueError, IndexError, NotImplementedError, OSError):
        return True  # Python cannot evaluate this Go pattern; the container engine will report missing files


def _is_included(path: Path, source: str) -> bool:
    """Return whether a Dockerfile's .dockerignore includes a path.

    A file that does not begin with * includes every path.
    """
    lines = (_text(path.with_name(f"{path.name}.dockerignore")) or "").splitlines()
    if [line.strip() for line in lines[:1]] != ["*"]:
        return True
    word = source.strip("/").removeprefix("./")
    included = [line[1:].strip().strip("/") for line in lines if line.startswith("!")]
    return word in ("", ".") or any(
        fnmatch(word, pattern)
        or fnmatch(pattern, word)
        or word.startswith(f"{pattern}/")
        or pattern.startswith(f"{word}/")
        for pattern in included
    )


def _readme_defect(text: str | None) -> str | None:
    """Return the first defect of a README.md, or None if the file is complete."""
    if text is None:
        return "README.md does not exist. Describe the implementation's purpose, how to run it, and its tuning"
    if unfilled := UNFILLED_LINE.findall(text):
        examples = "; ".join(" ".join(line.split()) for line in unfilled[:3])
        return f"README.md contains unfilled lines from the template ({examples}). Complete the lines, or remove them"
    prose = "".join(line for line in text.splitlines() if not line.startswith("#"))
    if len(prose.strip()) < 80:
        return "README.md is almost empty. Describe the implementation's purpose, how to run it, and its tuning"
    return None
