"""The command ``./tfb new NAME``, which creates a new implementation, either blank or as a copy."""

import json
import re
import shlex
import shutil
import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli import flags
from harness.cli.settings import resolve_test_types
from harness.errors import Exit, UsageError
from harness.paths import CONFIG_FILE, FRAMEWORKS, PROGRAM
from harness.plan import trees
from harness.plan.benchmark_config import url_keys
from harness.plan.discovery import RESERVED_NAMES, Selection, require_selected_valid, scan_folders
from harness.plan.implementation import Implementation
from harness.plan.suggestions import suggest
from harness.plan.testtypes.registry import TEST_TYPES

DEFAULT = "express"
NOT_COPIED = ("node_modules", "target", "dist", "build", "__pycache__", ".venv", "README.md")
README = """# {name}

Purpose: …

Run it alone: `./tfb debug {name}`

Tuning, with measured effects: …

Created {origin}.
"""
BLANK_DOCKERFILE = """\
FROM debian:trixie-slim
# RUN apt-get update && apt-get install -y --no-install-recommends … && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
EXPOSE 8080
USER nobody
CMD ["./server"]
"""
BLANK_URLS = {  # TechEmpower's URLs
    "json": "/json",
    "plaintext": "/plaintext",
    "db": "/db",
    "query": "/queries?queries=",
    "fortune": "/fortunes",
    "update": "/updates?queries=",
}
BLANK_ENTRY = {
    "approach": "Realistic",
    "classification": "Micro",
    "database": "Postgres",
    "orm": "Raw",
    "local": {"run": ["./server"]},
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NewFlags:
    """Flags for the contents of the new folder."""

    source: Annotated[
        str | None,
        Parameter(
            name="--from",
            help=f"implementation to copy; default: {DEFAULT}, or one in the language given by --language",
            completer=flags.complete_names,
        ),
    ] = None
    language: Annotated[
        str | None,
        Parameter(
            help="folder in frameworks/; default: the language of the copied implementation",
            completer=flags.complete_languages,
        ),
    ] = None
    blank: Annotated[bool, Parameter(help="do not copy code; works with any --language")] = False
    type: Annotated[
        tuple[str, ...],
        Parameter(
            help="test types to offer, for example json db protocols; default: all that the copied implementation "
            "offers, except protocols",
            consume_multiple=True,
            completer=flags.complete_test_types,
        ),
    ] = ()


def command(
    name: Annotated[
        str, Parameter(help="name of the framework: lower-case letters, digits, dots and dashes; if omitted, tfb asks")
    ] = "",
    /,
    *,
    options: NewFlags = NewFlags(),
    frameworks: Annotated[
        str | None, Parameter(help="folder of implementations; default: frameworks/", metavar="DIR")
    ] = None,
) -> int:
    """Create frameworks/<Language>/NAME as a copy of an implementation that passes verification."""
    if not name:
        print("name: ", end="", file=sys.stderr, flush=True)
        name = sys.stdin.readline().strip()
    folder, origin = create(Path(frameworks) if frameworks else FRAMEWORKS, name, options)
    print(f"{folder}/\nCreated {origin}.\n")
    if options.blank:
        print("docs/requirements.md specifies each route. tfb requests only routes that have a _url key.")
    frameworks_flag = f" --frameworks {shlex.quote(frameworks)}" if frameworks else ""
    print(f"Next: {PROGRAM} verify {name}{frameworks_flag} --runtime local --watch")
    return Exit.OK


def create(frameworks: Path, name: str, options: NewFlags) -> tuple[Path, str]:
    """Create an implementation's folder. Return the folder and its origin, for example "from `express`".

    Raises UsageError, without creating a folder, if the name is invalid or taken, or if there is nothing to copy.
    """
    _require_valid(name)
    frameworks = trees.find_tree(frameworks).root
    local, project = scan_folders(frameworks), scan_folders(FRAMEWORKS)
    implementations = {i.name: i for i in (*local.implementations, *project.implementations)}
    if name in implementations:
        raise UsageError(f"{name!r} already exists: {implementations[name].folder}; choose a different name")
    if broken := [each for each in local.folder_problems if each.kind == "problem" and name in each.names]:
        raise UsageError(f"{name!r} already exists, and its configuration is broken: {broken[0]}")
    if options.source and not options.blank:
        for tree in (local, project):
            require_selected_valid(tree, Selection(test=(options.source,)))
    types = resolve_test_types(options.type) if options.type else ()
    source = None if options.blank else _choose_source(implementations, options, types)
    target = frameworks / _choose_language(implementations, source, options) / name
    if target.exists():
        raise UsageError(f"{target} already exists: choose a different name")
    known_urls = [source.urls] if source else [BLANK_URLS, *(each.urls for each in implementations.values())]
    urls = _select_urls(known_urls, types or _default_types(source))
    entry = _copy(source, target) if source else _create_blank(target)
    entry = {**urls, **{key: value for key, value in entry.items() if key not in url_keys()}}
    _write_documents(target, entry, origin := f"from `{source.name}`" if source else "without code")
    return target, origin


def _require_valid(name: str) -> None:
    """Raise UsageError unless a name is valid for an implementation."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) or name in RESERVED_NAMES:
        raise UsageError(
            f"{name!r} is not a valid name: use lower-case letters, digits, dots and dashes, begin with a letter or "
            f"digit, and avoid {', '.join(RESERVED_NAMES)}"
        )


def _choose_language(
    implementations: Mapping[str, Implementation], source: Implementation | None, options: NewFlags
) -> str:
    """Return the language folder's name. Prefer an existing folder with a name that differs only in case.

    Raises UsageError for an invalid name.
    """
    if source:
        return source.folder.parent.name
    if options.source or not options.language:
        raise UsageError("--blank does not copy an implementation: specify --language LANG, and omit --from")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+#.-]*", options.language):
        raise UsageError(f"--language: {options.language!r} is not a valid name: use only letters, digits and + # . -")
    languages = {i.folder.parent.name.lower(): i.folder.parent.name for i in implementations.values()}
    return languages.get(options.language.lower(), options.language)


def _choose_source(
    implementations: Mapping[str, Implementation], options: NewFlags, types: Sequence[str]
) -> Implementation:
    """Return the implementation to copy. It must offer all test types in ``types``.

    Prefer the default implementation, then core implementations, then implementations without tags, then
    implementations with many test types.
    """
    language = options.language
    if not implementations:
        raise UsageError(
            f"{FRAMEWORKS} contains no implementations to copy; expected <Language>/<name>/{CONFIG_FILE}. Add --blank "
            "--language LANG, or run the command in a clone"
        )
    source = options.source or (None if language or types else DEFAULT)
    if source and source not in implementations:
        raise UsageError(f"--from: unknown name {source!r}; {suggest(source, implementations)}")
    candidates = (
        [implementations[source]] if source else [i for i in implementations.values() if i.variant == "default"]
    )
    languages = {i.folder.parent.name for i in candidates}
    if language:
        candidates = [i for i in candidates if i.folder.parent.name.lower() == language.lower()]
    if not candidates:
        raise UsageError(
            f"--language: there is no implementation in {language!r} to copy; {suggest(str(language), languages)}\n"
            "For a new language, add --blank"
        )
    offering = [i for i in candidates if i.urls.keys() >= {*types}]
    if not offering:
        names = ", ".join(i.name for i in candidates)
        raise UsageError(
            f"--type: none of {names} offers all of {', '.join(types)}; name fewer test types, or add --blank"
        )
    return min(offering, key=lambda i: (i.name != DEFAULT, not i.is_core, bool(i.entry.tags), -len(i.urls), i.name))


def _default_types(source: Implementation | None) -> tuple[str, ...]:
    """Return the test types to offer without --type.

    These are the source's test types that belong to no group or, for --blank, the scored test types.
    """
    return tuple(name for name in source.urls if not TEST_TYPES[name].group) if source else resolve_test_types(())


def _select_urls(known_urls: Iterable[Mapping[str, str]], types: Sequence[str]) -> dict[str, str]:
    """Return URL key -> URL for each test type. Use the first mapping in ``known_urls`` that contains the test type."""
    urls = ChainMap(*map(dict, known_urls))
    if unknown := [name for name in types if name not in urls]:
        raise UsageError(
            f"--type: no implementation offers {', '.join(unknown)}, so the URL is unknown. Omit the test type here, "
            "and add its URL to benchmark_config.json later"
        )
    return {TEST_TYPES[name].url_key: urls[name] for name in types}


def _copy(source: Implementation, target: Path) -> dict[str, object]:
    """Copy a variant's folder without the other variants' Dockerfiles. Return the variant's configuration entry.

    The Dockerfile and its .dockerignore file get the new name.
    """
    dockerfiles = {path.name for path in source.folder.glob("*.dockerfile*")}
    others = {name for name in dockerfiles if not name.startswith(source.dockerfile.name)}
    shutil.copytree(source.folder, target, ignore=shutil.ignore_patterns(*NOT_COPIED, *others))
    for path in target.glob(f"{source.dockerfile.name}*"):
        path.rename(path.with_name(path.name.replace(source.dockerfile.stem, target.name, 1)))
    config = json.loads((source.folder / CONFIG_FILE).read_text(encoding="utf-8"))
    entry: dict[str, object] = next(tests[source.variant] for tests in config["tests"] if source.variant in tests)
    return entry


def _create_blank(target: Path) -> dict[str, object]:
    """Create a folder with a template Dockerfile, and return the configuration entry."""
    target.mkdir(parents=True)
    (target / f"{target.name}.dockerfile").write_text(BLANK_DOCKERFILE, encoding="utf-8")
    return {**BLANK_ENTRY, "language": target.parent.name}


def _write_documents(target: Path, entry: Mapping[str, object], origin: str) -> None:
    """Write a new folder's configuration and README."""
    name = target.name
    new_entry = {key: value for key, value in entry.items() if key not in ("tags", "dockerfile")}
    new_entry |= {"framework": name, "display_name": name, "notes": "", "versus": ""}
    document = {"framework": name, "maintainers": [], "tests": [{"default": new_entry}]}
    (target / CONFIG_FILE).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (target / "README.md").write_text(README.format(name=name, origin=origin), encoding="utf-8")
