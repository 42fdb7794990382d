"""Gathers the evidence for ``checks/conduct.py``: an implementation's files and the server's processes."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import psutil

from harness.paths import CONFIG_FILE
from harness.plan import dockerfile
from harness.plan.discovery import Implementation, is_own_tree
from harness.records import safe_read
from harness.records.outcome import worst_outcome
from harness.records.verification_record import VerificationRecord
from harness.runtime import Server
from harness.verify.checks import CONDUCT
from harness.verify.checks.evidence import Conduct, Evidence, Folder
from harness.verify.verification import judge

ROOT_USERS = {"root", "0", "0:0", "root:root"}
INIT = {"docker-init", "tini", "catatonit"}  # init processes of containers, which forward signals
LEFT_OPEN = re.compile(r"^[^`\n]{1,80}: …\s*$", re.MULTILINE)  # a line of the template that was not filled in
LEAST_README = 80  # characters, without headings


def verdict(implementation: Implementation, conduct: Conduct, began: float) -> VerificationRecord | None:
    """Return the verdict on a server's conduct; None for an implementation written for TechEmpower's toolset."""
    if implementation.local is None:
        return None  # it expects the names and containers of TechEmpower's toolset
    results = judge(Evidence(test_type=CONDUCT, rules=implementation.rules, conduct=conduct))
    return VerificationRecord(
        implementation=implementation.name,
        test_type=CONDUCT,
        process=0,
        thorough=True,
        outcome=worst_outcome(result.outcome for result in results),
        results=results,
        duration=time.monotonic() - began,
    )


def folder_of(implementation: Implementation, *, strict: bool) -> Folder | None:
    """Return facts from an implementation's files; None for implementations of other trees, unless ``strict``."""
    local = implementation.local
    if local is None or not (strict or is_own_tree(implementation.folder.parent.parent)):
        return None
    text = _text(implementation.dockerfile)
    recipe = dockerfile.parse_recipe(text or "")
    command = (
        dockerfile.split_command(implementation.entry.docker_cmd) if implementation.entry.docker_cmd else recipe.command
    )
    return Folder(
        file=CONFIG_FILE,
        dockerfile=implementation.dockerfile.name,
        whole=tuple(_dockerfile_wrongs(implementation.dockerfile, recipe, text)),
        image_command=tuple(command),
        same_command=_plain(command) == _plain(local.run),
        run=tuple(local.run),
        unset=_unset(
            local.env | _settings(local.run), dockerfile.environment_variables(text or "") | _settings(command)
        ),
        readme=_readme_wrong(_text(implementation.folder / "README.md")),
        maintainers=implementation.maintainers,
    )


def root_processes(server: Server) -> tuple[str, ...]:
    """Return the names of a container's processes that run as root."""
    found = []
    for pid in server.meter.read().pids:
        with suppress(psutil.Error):  # the process has exited
            process = psutil.Process(pid)
            if process.uids().effective == 0 and process.name() not in INIT:
                found.append(process.name())
    return tuple(found)


def _text(path: Path) -> str | None:
    try:
        return safe_read.read(path, safe_read.MAX_TEXT_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return None


def _without_shell(command: Sequence[str]) -> list[str]:
    """Return the words of a command without the shell around it."""
    if len(command) == 3 and PurePosixPath(command[0]).name in ("sh", "bash") and command[1] == "-c":
        return dockerfile.split_command(command[2])
    return [*command]


def _plain(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command without the parts that may differ: shell, variables, ``exec``, the program's folder."""
    words = _without_shell(command)
    set_before = len(dockerfile.parse_assignments(words))
    words = words[set_before + (words[:1] == ["env"]) :] if set_before else words
    if words[:1] == ["exec"]:
        words = words[1:]
    return (PurePosixPath(words[0]).name, *words[1:]) if words else ()


def _settings(command: Sequence[str]) -> dict[str, str]:
    """Return the variables that a command sets for its program."""
    return dockerfile.parse_assignments(_without_shell(command))


def _unset(local: Mapping[str, str], image: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings of the local runtime that the image lacks; paths may differ."""
    return tuple(
        f"{name}={value}"
        for name, value in local.items()
        if name not in image or ("/" not in value and "$" not in image[name] and image[name] != value)
    )


def _dockerfile_wrongs(path: Path, recipe: dockerfile.ImageRecipe, text: str | None) -> list[str]:
    name = path.name
    if text is None:
        return [f"{name} does not exist. Write it, or name an existing file with the key dockerfile"]
    wrong = []
    if absent := [source for source in recipe.copied if not _there(path.parent, source)]:
        wrong.append(f"{name} copies {', '.join(absent)}, which the folder does not contain")
    elif hidden := [source for source in recipe.copied if not _let_through(path, source)]:
        wrong.append(f"{name} copies {', '.join(hidden)}, which {name}.dockerignore excludes")
    if recipe.user in ROOT_USERS:
        wrong.append(f"{name} ends with USER {recipe.user}: name an unprivileged account")
    elif recipe.user is None:
        wrong.append(f"{name} has no USER, so the server may run as root: name an unprivileged account before CMD")
    return wrong


def _there(folder: Path, source: str) -> bool:
    """Return whether the build context has a source of COPY: a name, a pattern, or the folder."""
    word = source.strip("/")
    while word.startswith("./"):
        word = word[2:].lstrip("/")
    if word in ("", "."):
        return True
    if ".." in PurePosixPath(word).parts:
        return False  # the engine refuses paths outside the build context
    try:
        return (folder / word).exists() or any(folder.glob(word))
    except (ValueError, IndexError, NotImplementedError, OSError):
        return True  # a Go pattern that Python cannot evaluate; the engine reports errors


def _let_through(path: Path, source: str) -> bool:
    """Return whether a .dockerignore that starts with ``*`` includes a source again."""
    lines = (_text(path.with_name(f"{path.name}.dockerignore")) or "").splitlines()
    if [line.strip() for line in lines[:1]] != ["*"]:
        return True
    word = source.strip("/").removeprefix("./")
    kept = [line[1:].strip().strip("/") for line in lines if line.startswith("!")]
    return word in ("", ".") or any(
        fnmatch(word, each) or fnmatch(each, word) or word.startswith(f"{each}/") or each.startswith(f"{word}/")
        for each in kept
    )


def _readme_wrong(text: str | None) -> str | None:
    """Return the defect of a README.md, or None if it is complete."""
    if text is None:
        return "README.md does not exist: describe the purpose, how to run it and the tuning"
    if left := LEFT_OPEN.findall(text):
        named = "; ".join(" ".join(line.split()) for line in left[:3])
        return f"README.md still has unfilled lines of the template ({named}): complete the lines, or remove them"
    said = "".join(line for line in text.splitlines() if not line.startswith("#"))
    if len(said.strip()) < LEAST_README:
        return "README.md is almost empty: describe the purpose, how to run it and the tuning"
    return None
