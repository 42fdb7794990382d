"""``./tfb new NAME --from FOLDER``: copies a folder of another tree, and says what it takes to become ours."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, UsageError
from harness.plan.benchmark_config import TestEntry
from harness.plan.discovery import CONFIG_FILE, document_of
from harness.plan.dockerfile import of_file
from harness.plan.foreign import Foreign, lacking, tolerate
from harness.records import bounded

NOTES = "IMPORTED.md"
LEFT_OUT = shutil.ignore_patterns("node_modules", "target", "dist", "__pycache__", ".venv", ".git")
READ_BYTES = 1 << 18  # of a source file that is searched
SOURCES = 400  # files that are searched
# By a file of it, how a kind of project begins its local block; the first file that there is tells.
KINDS: dict[str, dict[str, object]] = {
    "pom.xml": {"requires": {"java": ">=21", "maven": ">=3.8"}, "build": ["mvn", "-q", "-C", "package"]},
    "Cargo.toml": {"requires": {"cargo": ">=1.85"}, "build": ["cargo", "build", "--release"]},
    "go.mod": {"requires": {"go": ">=1.22"}, "build": ["go", "build", "-o", "server", "."]},
    "package.json": {"requires": {"node": ">=20", "npm": ">=9"}, "build": ["npm", "install"]},
    "requirements.txt": {"requires": {"python3": ">=3.11"}},
    "Gemfile": {"requires": {"ruby": ">=3"}, "build": ["bundle", "install"]},
    "mix.exs": {"requires": {"elixir": ">=1.15 by elixir --short-version"}, "build": ["mix", "deps.get"]},
}


def bring(source: Path, tree: Path, framework: str) -> tuple[Path, tuple[str, ...]]:
    """The new folder below ``tree``, and the differences; raises UsageError and ConfigError, with nothing made."""
    document: Any = document_of(source / CONFIG_FILE)
    try:
        found = tolerate(document, folder=source.name, language=source.parent.name)
    except ConfigError as error:
        raise ConfigError(f"{source / CONFIG_FILE}: {error}") from error
    kept = {variant: entry for variant, entry in found.tests if lacking(entry.database, entry.urls) is None}
    if not kept:
        raise ConfigError(f"{source / CONFIG_FILE}: every test asks for a database that is not served here")
    target = tree / source.parent.name / framework
    if target.exists():
        raise UsageError(f"{target} exists already")
    begun = {variant: _local(source, _dockerfile(source, found.framework, variant, kept[variant])) for variant in kept}
    shutil.copytree(source, target, ignore=LEFT_OUT)
    try:
        (target / CONFIG_FILE).write_text(
            json.dumps(_config(found, framework, target.parent.name, begun, document), indent=2) + "\n",
            encoding="utf-8",
        )
        notes = tuple(_differences(source, found, kept, begun))
        text = f"# {framework}, from another tree\n\n" + "".join(f"- {note}\n" for note in notes)
        (target / NOTES).write_text(text, encoding="utf-8")
    except BaseException:
        shutil.rmtree(target)
        raise
    return target, notes


def _named(framework: str, variant: str) -> str:
    return framework if variant == "default" else f"{framework}-{variant}"


def _dockerfile(source: Path, framework: str, variant: str, entry: TestEntry) -> Path:
    return source / (entry.dockerfile or f"{_named(framework, variant)}.dockerfile")


def _config(
    found: Foreign, framework: str, language: str, begun: Mapping[str, Mapping[str, object]], document: dict[str, Any]
) -> dict[str, object]:
    """Their own values under our keys, Dockerfiles by their names, and the local block that was begun."""
    groups = [document["tests"]] if isinstance(document["tests"], dict) else document["tests"]
    tests = {}
    for variant, entry in ((v, e) for group in groups for v, e in group.items() if v in begun):
        aside = {w.split(".", 2)[2].partition(":")[0] for w in found.warnings if w.startswith(f"tests.{variant}.")}
        own = {"language": language, **{key: value for key, value in entry.items() if key not in aside}}
        if framework != found.framework:
            own.setdefault("dockerfile", f"{_named(found.framework, variant)}.dockerfile")
        tests[variant] = {**own, "local": begun[variant]}
    return {"framework": framework, "maintainers": list(found.maintainers), "tests": [tests]}


def _local(source: Path, dockerfile: Path) -> dict[str, object]:
    """A local block as far as files tell: tools, build, and the command that its Dockerfile ends with."""
    kind = next((KINDS[file] for file in KINDS if any(source.glob(file)) or any(source.glob(f"*/{file}"))), {})
    return {**kind, "run": list(_command(dockerfile) or ("false",))}


def _command(dockerfile: Path) -> tuple[str, ...]:
    """The words of its last CMD or ENTRYPOINT."""
    if not dockerfile.is_file():
        return ()
    text = re.sub(r"\\\n", " ", bounded.read(dockerfile, bounded.TEXT_BYTES).decode(errors="replace"))
    commands = re.findall(r"^\s*(?:CMD|ENTRYPOINT)\s+(.+)$", text, re.MULTILINE | re.IGNORECASE)
    for read in (json.loads, shlex.split):
        try:
            words = read(commands[-1]) if commands else []
        except ValueError:
            continue
        return tuple(map(str, words)) if isinstance(words, list) else ()
    return ()


def _differences(
    source: Path, found: Foreign, kept: Mapping[str, TestEntry], begun: Mapping[str, object]
) -> Iterator[str]:
    """What is not as here, one sentence each, each with what to do."""
    licences = [path for folder in (source, *source.parents[:3]) for path in sorted(folder.glob("LICEN[CS]E*"))]
    licence = f"{licences[0].name} of {licences[0].parent.name}/" if licences else "none was found: ask its maintainers"
    yield f"licence: {licence}; read it before this is published here"
    yield from (f"{CONFIG_FILE}: {words}" for words in (*found.warnings, *found.problems))
    if left := [variant for variant, _ in found.tests if variant not in kept]:
        yield f"left out, since their database is not served here: {', '.join(left)}"
    yield (
        f"local block: begun as {json.dumps(next(iter(begun.values())))}, a guess from its files and its Dockerfile: "
        "complete it, or leave the folder where it was, where it runs without one"
    )
    for what, pattern in (("DBHOST, DBPORT, DBNAME, DBUSER, DBPASS", rb"tfb-database"), ("PORT", rb"\b8080\b")):
        written = ", ".join(_mentions(source, re.compile(pattern)))
        yield f"{what}: read from the environment" + (f"; written into {written}" if written else "")
    yield "containers here have a read-only root (/tmp may be written), no capabilities and no other privileges"
    if bases := sorted({image for path in source.glob("*.dockerfile") for image in of_file(path)}):
        yield f"base images: {', '.join(bases)}; those of this repository are built upon debian:trixie-slim"
    yield "rules: all of docs/requirements.md holds for it here, also what TechEmpower does not ask for (--rules tfb)"


def _mentions(source: Path, pattern: re.Pattern[bytes]) -> Iterator[str]:
    """Files below the folder that hold the pattern."""
    for path in sorted(p for p in source.rglob("*") if p.is_file() and not p.is_symlink())[:SOURCES]:
        with bounded.open_regular(path) as file:
            if pattern.search(file.read(READ_BYTES)):
                yield path.relative_to(source).as_posix()
