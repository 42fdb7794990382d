"""``./tfb import FOLDER``: copies a folder of another tree into ours, and says what it takes to become one of ours."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cli.arguments import Parser
from harness.errors import ConfigError, Exit, UsageError
from harness.paths import FRAMEWORKS
from harness.plan.benchmark_config import TestEntry
from harness.plan.discovery import CONFIG_FILE, document_of, scan
from harness.plan.dockerfile import of_file
from harness.plan.foreign import Foreign, lacking, tolerate
from harness.records import bounded

NOTES = "IMPORTED.md"
LEFT_OUT = shutil.ignore_patterns("node_modules", "target", "dist", "__pycache__", ".venv", ".git")
READ_BYTES = 1 << 18  # of a source file that is searched
SOURCES = 400  # files that are searched


@dataclass(frozen=True, kw_only=True)
class Tools:
    """How a kind of project is built and what it needs, told by a file of it."""

    file: str
    requires: Mapping[str, str]
    build: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]


# A sign in the text -> the licence's usual name, the more special first.
LICENCES = {
    r"Apache License": "Apache-2.0",
    r"GNU LESSER GENERAL": "LGPL",
    r"GNU AFFERO": "AGPL",
    r"GNU GENERAL PUBLIC": "GPL",
    r"Mozilla Public": "MPL-2.0",
    r"Neither the name": "BSD-3-Clause",
    r"Redistribution and use in source": "BSD-2-Clause",
    r"Permission is hereby granted, free of charge": "MIT",
    r"Permission to use, copy, modify, and/or distribute": "ISC",
}
# In this order: a project of several kinds is told by the first file that it has.
KINDS = (
    Tools(
        file="pom.xml",
        requires={"java": ">=21", "maven": ">=3.8"},
        build=(("mvn", "-q", "-C", "package"),),
        run=("java",),
    ),
    Tools(file="Cargo.toml", requires={"cargo": ">=1.85"}, build=(("cargo", "build", "--release"),), run=()),
    Tools(file="go.mod", requires={"go": ">=1.22"}, build=(("go", "build", "-o", "server", "."),), run=("./server",)),
    Tools(file="package-lock.json", requires={"node": ">=20", "npm": ">=9"}, build=(("npm", "ci"),), run=("node",)),
    Tools(file="package.json", requires={"node": ">=20", "npm": ">=9"}, build=(("npm", "install"),), run=("node",)),
    Tools(file="requirements.txt", requires={"python3": ">=3.11"}, build=(), run=("python3",)),
    Tools(file="Gemfile", requires={"ruby": ">=3"}, build=(("bundle", "install"),), run=("ruby",)),
    Tools(file="mix.exs", requires={"elixir": ">=1.15"}, build=(("mix", "deps.get"),), run=("mix", "run")),
)


def main(argv: Sequence[str]) -> int:
    """Copy, begin the ``local`` block, list the differences; leaves nothing half made."""
    p = Parser(
        prog="./tfb import",
        description="Copy an implementation's folder, of TechEmpower's tree or another one, into this repository's: "
        f"its configuration in our keys, a local block begun, and {NOTES}: what differs here, and its licence.",
    )
    p.add_argument("folder", metavar="FOLDER", help="such as <tree>/frameworks/Go/fasthttp")
    p.add_argument("--name", help="another name of the framework, where its own is taken")
    p.add_argument("--to", metavar="DIR", help="another folder of implementations; default: frameworks/")
    options = p.parse_args(list(argv))
    source = Path(options.folder).resolve()
    tree = Path(options.to).resolve() if options.to else FRAMEWORKS
    target, notes = bring(source, tree, options.name)
    print(f"{target}/\n")
    for note in notes:
        print(f"· {note}")
    print(f"\nThe same list is in {target / NOTES}. Next: ./tfb --test {target.name} --mode verify")
    return Exit.OK


def bring(source: Path, tree: Path, name: str | None = None) -> tuple[Path, tuple[str, ...]]:
    """The new folder, and the differences; raises UsageError and ConfigError."""
    if not (source / CONFIG_FILE).is_file():
        raise UsageError(f"{source} holds no {CONFIG_FILE}: give the folder of an implementation")
    document: Any = document_of(source / CONFIG_FILE)
    try:
        found = tolerate(document, folder=source.name, language=source.parent.name)
    except ConfigError as error:
        raise ConfigError(f"{source / CONFIG_FILE}: {error}") from error
    framework = name or found.framework
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", framework):
        raise UsageError(
            f"{framework!r} is no name here (lower-case letters, digits, dots, dashes): give one with --name"
        )
    kept = {variant: entry for variant, entry in found.tests if lacking(entry.database, entry.urls) is None}
    if not kept:
        raise ConfigError(f"{source / CONFIG_FILE}: every test asks for a database that is not served here")
    names = {_named(framework, variant) for variant in kept}
    if taken := names & {i.name for i in scan(tree).implementations}:
        raise UsageError(f"the name {min(taken)!r} is taken here: give another with --name")
    target = tree / source.parent.name / framework
    if target.exists():
        raise UsageError(f"{target} exists already")
    begun = {variant: _local(source, _dockerfile(source, found.framework, variant, kept[variant])) for variant in kept}
    shutil.copytree(source, target, ignore=LEFT_OUT)
    try:
        _write_config(target, found, framework, kept, begun, document)
        notes = tuple(_differences(source, found, framework, kept, begun))
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


def _write_config(
    target: Path,
    found: Foreign,
    framework: str,
    kept: Mapping[str, TestEntry],
    begun: Mapping[str, Mapping[str, object]],
    document: Mapping[str, Any],
) -> None:
    """Their own values under our keys, Dockerfiles by their names, and the local block that was begun."""
    raw = document["tests"]
    groups = [raw] if isinstance(raw, dict) else raw
    entries = {variant: dict(entry) for group in groups for variant, entry in group.items() if variant in kept}
    tests = {}
    for variant, entry in entries.items():
        aside = {w.split(".", 2)[2].partition(":")[0] for w in found.warnings if w.startswith(f"tests.{variant}.")}
        own = {key: value for key, value in entry.items() if key not in aside}
        own.setdefault("language", target.parent.name)
        before, after = _named(found.framework, variant), _named(framework, variant)
        if before != after and "dockerfile" not in own:
            own["dockerfile"] = f"{before}.dockerfile"
        tests[variant] = {**own, "local": begun[variant]}
    config = {"framework": framework, "maintainers": list(found.maintainers), "tests": [tests]}
    (target / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _local(source: Path, dockerfile: Path) -> dict[str, object]:
    """A local block as far as files tell: tools, build, and the command that its Dockerfile ends with."""
    kind = next((kind for kind in KINDS if any(source.glob(kind.file)) or any(source.glob(f"*/{kind.file}"))), None)
    run = _command(dockerfile) or (kind.run if kind else ()) or ("false",)
    if kind is None:
        return {"run": list(run)}
    return {"requires": dict(kind.requires), "build": [list(words) for words in kind.build], "run": list(run)}


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
    source: Path, found: Foreign, framework: str, kept: Mapping[str, TestEntry], begun: Mapping[str, object]
) -> Iterator[str]:
    """What is not as here, one sentence each, each with what to do."""
    yield _licence(source)
    yield from (f"{CONFIG_FILE}: {words}" for words in (*found.warnings, *found.problems))
    if left := [variant for variant, _ in found.tests if variant not in kept]:
        yield f"left out, since their database is not served here: {', '.join(left)}"
    yield (
        f"local block: begun as {json.dumps(next(iter(begun.values())))}; it is a guess "
        "from its files and its Dockerfile: complete it, or leave the folder where it was, where it runs without one"
    )
    named = dict(_mentions(source, re.compile(rb"tfb-database")))
    if named:
        yield f"DBHOST, DBPORT: the database's name is written into {', '.join(named)}; read them from the environment"
    else:
        yield "DBHOST, DBPORT, DBNAME, DBUSER, DBPASS: read them from the environment"
    ports = dict(_mentions(source, re.compile(rb"\b8080\b")))
    yield "PORT: read it from the environment" + (f"; 8080 is written into {', '.join(ports)}" if ports else "")
    yield "containers here have a read-only root (/tmp may be written), no capabilities and no other privileges"
    bases = sorted({image for path in source.glob("*.dockerfile") for image in of_file(path)})
    if bases:
        yield f"base images: {', '.join(bases)}; those of this repository are built upon debian:trixie-slim"
    yield "rules: all of docs/requirements.md holds for it here, also what TechEmpower does not ask for (--rules tfb)"
    yield f"README.md: CONTRIBUTING.md says what that of {framework} should hold"


def _licence(source: Path) -> str:
    for folder in (source, *source.parents[:3]):
        for path in sorted((*folder.glob("LICEN[CS]E*"), *folder.glob("COPYING*"))):
            text = bounded.read(path, bounded.TEXT_BYTES).decode(errors="replace")
            named = next((name for sign, name in LICENCES.items() if re.search(sign, text, re.IGNORECASE)), "not known")
            whose = "the folder" if folder == source else "the tree it comes from"
            return f"licence: {named}, by {path.name} of {whose}"
    return "licence: none was found: ask its maintainers before it is published here"


def _mentions(source: Path, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, None]]:
    """Files below the folder that hold the pattern."""
    for number, path in enumerate(sorted(p for p in source.rglob("*") if p.is_file() and not p.is_symlink())):
        if number >= SOURCES:
            return
        with bounded.open_regular(path) as file:
            if pattern.search(file.read(READ_BYTES)):
                yield path.relative_to(source).as_posix(), None
