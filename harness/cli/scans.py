"""Scans the repository for ``./tfb check``. Scans cover prose, shell scripts, CI workflows and vulnerabilities.

``python -m harness.cli.scans NAME`` runs a scan. If the advisory database is unreachable, an audit passes. The last
line of the check then reports the audit as "not judged".
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.errors import EnvironmentLacksError, TfbError
from harness.host import process
from harness.host.git import Repository
from harness.paths import REPOSITORY, state_folder

# Prefix of the reason why a test or scan was inconclusive, although no tool is missing. Typical reasons: the advisory
# database is unreachable, the machine is busy, or creating namespaces is not permitted.
NOT_JUDGED = "not judged: "
SKIPPED_VARIABLE = "TFB_SKIPPED"  # environment variable: path of the file that lists skipped scans and tests
TOOL_SECONDS = 300.0  # time limit for running a tool
BUILD_SECONDS = 1200.0  # time limit for building a tool
BIN = Path(sys.executable).parent  # contains the programs that requirements-dev.lock installs
SHEBANG = re.compile(rb"#!.*[/ ](?:ba|da|k)?sh\b")
WORKFLOWS = (".github/workflows/*.y*ml",)
ACTIONS = ("action.y*ml", "*/action.y*ml", ".github/dependabot.y*ml")
ACTIONLINT = REPOSITORY / "harness" / "tests" / "actionlint"  # go.sum pins the program's hashes
CARGO_AUDIT = "0.22.2"
RUST_ADVISORIES = "https://github.com/RustSec/advisory-db"
# Environment variable: path of a local advisory database, for machines that cannot reach RUST_ADVISORIES.
RUST_ADVISORIES_COPY = "TFB_ADVISORY_DB"
DOCUMENTS = ("*.md", ":!results")
UNSPELLED = (
    ":!results",
    ":!*.lock",
    ":!*-lock.json",
    ":!*.sum",
    ":!*.svg",
    ":!*.png",
    ":!harness/tests/fuzz/corpus",
)
PROSE_RULES = REPOSITORY / ".proselintrc.json"
NPM_FOLDERS = ("harness/", "toolset/")  # every package-lock.json in these folders is audited


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The known vulnerabilities in a lock file's packages, and the reason if some or all could not be determined."""

    lock: str
    vulnerabilities: Sequence[str] = ()
    not_judged: str = ""


def list_files(*patterns: str) -> list[Path]:
    """Return the repository's files that match any of the patterns, except for files that git ignores.

    In a pattern, ``*`` also matches slashes. A pattern that begins with ``:!`` excludes files.
    """
    names = Repository.containing(REPOSITORY).read("ls-files", "-z", "-c", "-o", "--exclude-standard").names
    excluded = [pattern.removeprefix(":!") for pattern in patterns if pattern.startswith(":!")]
    included = [pattern for pattern in patterns if not pattern.startswith(":!")] or ["*"]
    paths = (
        REPOSITORY / name
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in included)
        and not any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}/") for pattern in excluded)
    )
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def spelling() -> int:
    """Run codespell on all text files. pyproject.toml lists accepted words."""
    return _run_tool([str(BIN / "codespell"), *_names(list_files(*UNSPELLED))])


def markdown() -> int:
    """Run pymarkdown, which checks formatting, on every Markdown document."""
    return _run_tool([str(BIN / "pymarkdown"), "scan", *_names(list_files(*DOCUMENTS))])


def prose() -> int:
    """Run proselint, which checks usage and style, on every Markdown document."""
    return _run_tool([str(BIN / "proselint"), "--config", str(PROSE_RULES), "check", *_names(list_files(*DOCUMENTS))])


def shell() -> int:
    """Run ShellCheck on every shell script."""
    scripts = [path for path in list_files() if is_shell_script(path)]
    return _run_tool([str(BIN / "shellcheck"), *_names(scripts)])


def is_shell_script(path: Path) -> bool:
    """Return whether a file's name or first line shows that it is a shell script."""
    if path.suffix in (".sh", ".bash"):
        return True
    with path.open("rb") as file:
        return SHEBANG.match(file.readline(200)) is not None


def workflows() -> int:
    """Run zizmor on every CI workflow and composite action."""
    files = list_files(*WORKFLOWS, *ACTIONS)
    return _run_tool([str(BIN / "zizmor"), "--offline", "--no-progress", "--strict-collection", *_names(files)])


def actionlint() -> int:
    """Run actionlint on every CI workflow. It checks the shell commands in workflows with ShellCheck."""
    tool = ["go", "-C", str(ACTIONLINT), "tool", "actionlint", "-no-color", "-shellcheck", str(BIN / "shellcheck")]
    return _run_tool([*tool, *map(str, list_files(*WORKFLOWS))])


def audit_python() -> int:
    """Run pip-audit on the Python lock files."""
    return _report_audits(map(python_audit, list_files("requirements*.lock")))


def python_audit(lock: Path) -> Audit:
    """Return the vulnerabilities that the package index reports for the packages in a lock file."""
    command = [str(BIN / "pip-audit"), "--require-hashes", "--disable-pip", "--progress-spinner", "off"]
    document, last_line = _run_json([*command, "--format", "json", "-r", str(lock)])
    name = _name(lock)
    if "dependencies" not in document:
        return Audit(lock=name, not_judged=last_line)
    packages = document["dependencies"]
    vulnerabilities = [
        f"{package['name']} {package['version']}: {advisory['id']}"
        for package in packages
        for advisory in package.get("vulns", ())
    ]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    not_judged = (
        f"the package index has no advisory data for {len(unknown)} of {len(packages)} packages" if unknown else ""
    )
    return Audit(lock=name, vulnerabilities=vulnerabilities, not_judged=not_judged)


def audit_npm() -> int:
    """Run npm audit on every package-lock.json in ``NPM_FOLDERS``."""
    locks = [lock for lock in list_files("*package-lock.json") if _name(lock).startswith(NPM_FOLDERS)]
    return _report_audits(map(npm_audit, locks))


def npm_audit(lock: Path) -> Audit:
    """Return the vulnerabilities that the package registry reports for the packages in a lock file."""
    document, last_line = _run_json(["npm", "audit", "--package-lock-only", "--json"], cwd=lock.parent)
    if "vulnerabilities" not in document:
        return Audit(lock=_name(lock), not_judged=document.get("message") or last_line)
    packages = document["vulnerabilities"].values()
    vulnerabilities = [
        f"{package['name']}: {advisory['severity']}: {advisory['title']}"
        for package in packages
        for advisory in package["via"]
        if "title" in advisory
    ]
    return Audit(lock=_name(lock), vulnerabilities=vulnerabilities or [package["name"] for package in packages])


def audit_rust() -> int:
    """Run cargo-audit on every Cargo.lock."""
    locks = list_files("*Cargo.lock")
    copy = os.environ.get(RUST_ADVISORIES_COPY)
    if copy is None and (reason := _unreachable(RUST_ADVISORIES)):
        return _report_audits(Audit(lock=_name(lock), not_judged=reason) for lock in locks)
    try:
        tool = _cargo_audit()
    except TfbError as error:
        return _report_audits(Audit(lock=_name(lock), not_judged=str(error)) for lock in locks)
    database = ["--db", copy, "--no-fetch"] if copy else ["--db", str(state_folder() / "advisory-db")]
    return _report_audits(rust_audit(lock, (str(tool), "audit", "--json", *database)) for lock in locks)


def rust_audit(lock: Path, command: Sequence[str]) -> Audit:
    """Return the vulnerabilities that the RustSec database reports for the crates in a lock file."""
    document, last_line = _run_json([*command, "--file", str(lock)])
    if "vulnerabilities" not in document:
        return Audit(lock=_name(lock), not_judged=last_line)
    vulnerabilities = [
        f"{each['package']['name']} {each['package']['version']}: {each['advisory']['id']}"
        for each in document["vulnerabilities"]["list"]
    ]
    return Audit(lock=_name(lock), vulnerabilities=vulnerabilities)


def _unreachable(repository: str) -> str:
    """Return why a git repository cannot be reached, or an empty string if it responds."""
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = process.run(["git", "ls-remote", repository, "HEAD"], seconds=30.0, env=quiet)
    except TfbError as error:
        return str(error)
    return _last_line(done.stdout) if done.status else ""


def _cargo_audit() -> Path:
    """Return the path of cargo-audit. Build it first if necessary. Raises EnvironmentLacksError if the build fails."""
    root = state_folder() / "tools" / f"cargo-audit-{CARGO_AUDIT}"
    program = root / "bin" / "cargo-audit"
    if not program.is_file():
        print(f"building cargo-audit {CARGO_AUDIT}, which takes a few minutes, but only once", flush=True)
        command = ["cargo", "install", "--quiet", "--locked", "--root", str(root), f"cargo-audit@{CARGO_AUDIT}"]
        done = process.run(command, seconds=BUILD_SECONDS)
        if done.status:
            raise EnvironmentLacksError(f"cannot build cargo-audit {CARGO_AUDIT}: {_last_line(done.stdout)}")
    return program


def _run_json(command: Sequence[str], cwd: Path = REPOSITORY) -> tuple[Mapping[str, Any], str]:
    """Run a tool. Return the JSON object that it printed (empty if there is none) and the last line of output."""
    try:
        output = process.run(command, seconds=TOOL_SECONDS, cwd=cwd).stdout
    except process.CommandTimeoutError as error:
        return {}, str(error)
    for begin in re.finditer(r"^\{", output, re.MULTILINE):
        try:
            document, _ = json.JSONDecoder().raw_decode(output[begin.start() :])
        except ValueError:
            continue
        return document, _last_line(output)
    return {}, _last_line(output)


def _report_audits(audits: Iterable[Audit]) -> int:
    """Print the vulnerabilities, report audits without a result as skipped, and return the exit status."""
    failed = False
    for audit in audits:
        for vulnerability in audit.vulnerabilities:
            print(f"{audit.lock}: {vulnerability}")
        failed |= bool(audit.vulnerabilities)
        if audit.not_judged:
            _report_skipped(f"vulnerabilities in {audit.lock}", audit.not_judged)
        elif not audit.vulnerabilities:
            print(f"{audit.lock}: no known vulnerabilities")
    return int(failed)


def _report_skipped(check: str, cause: str) -> None:
    """Print why ``check`` was not judged, and report the reason to ``./tfb check``."""
    reason = f"{NOT_JUDGED}{cause}"
    print(f"{check}: {reason}")
    if path := os.environ.get(SKIPPED_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps([check, reason]) + "\n")


def _run_tool(command: Sequence[str]) -> int:
    """Run a tool in the repository root, print the output, and return the exit status."""
    done = process.run(command, seconds=TOOL_SECONDS, cwd=REPOSITORY)
    print(done.stdout, end="")
    return done.status


def _names(paths: Iterable[Path]) -> Iterator[str]:
    return map(_name, paths)


def _name(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


SCANS: Mapping[str, Callable[[], int]] = {
    "actionlint": actionlint,
    "audit-npm": audit_npm,
    "audit-python": audit_python,
    "audit-rust": audit_rust,
    "markdown": markdown,
    "prose": prose,
    "shell": shell,
    "spelling": spelling,
    "workflows": workflows,
}

if __name__ == "__main__":
    sys.exit(SCANS[sys.argv[1]]())
