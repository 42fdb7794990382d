"""``./tfb new NAME``: the folder of a new implementation: begun from one that passes, or without code."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli import flags
from harness.errors import Exit, UsageError
from harness.paths import CONFIG_FILE, FRAMEWORKS
from harness.plan import trees
from harness.plan.discovery import RESERVED_NAMES, Implementation, Selection, require_selected_valid, scan_folders
from harness.plan.suggestions import suggest

DEFAULT = "express"
NOT_COPIED = ("node_modules", "target", "dist", "build", "__pycache__", ".venv", "README.md")
README = """# {name}

What it shows: …

Run it alone: `./tfb debug {name}`

What was tuned, and what the measurement said: …

Begun {origin}.
"""
# Of a blank one.
DOCKERFILE = """\
FROM debian:trixie-slim
# RUN apt-get update && apt-get install -y --no-install-recommends … && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
EXPOSE 8080
USER nobody
CMD ["./server"]
"""
ENTRY = {
    "json_url": "/json",
    "plaintext_url": "/plaintext",
    "db_url": "/db",
    "query_url": "/queries?queries=",
    "fortune_url": "/fortunes",
    "update_url": "/updates?queries=",
    "approach": "Realistic",
    "classification": "Micro",
    "database": "Postgres",
    "orm": "Raw",
    "local": {"run": ["./server"]},
}


def command(
    name: Annotated[str, Parameter(help="name of the framework: lower case, digits, dots, dashes")] = "",
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(
            name="--from",
            help=f"implementation to begin from; default: the language's, or {DEFAULT}",
            completer=flags.complete_names,
        ),
    ] = None,
    language: Annotated[
        str | None,
        Parameter(help="a folder of frameworks/; default: that of the source", completer=flags.complete_languages),
    ] = None,
    blank: Annotated[bool, Parameter(help="without code, in any --language")] = False,
    frameworks: Annotated[str | None, Parameter(help="another folder of implementations")] = None,
) -> int:
    """Make frameworks/<Language>/NAME from an implementation that passes: change it into yours."""
    if not name:
        print("name: ", end="", file=sys.stderr, flush=True)
        name = sys.stdin.readline().strip()
    target, origin = make(Path(frameworks) if frameworks else FRAMEWORKS, name, source, language, blank=blank)
    print(f"{target}/\nBegun {origin}.\n")
    if blank:
        print("docs/requirements.md says what each route must do; a route without its _url is not asked for.")
    elsewhere = f" --frameworks {shlex.quote(frameworks)}" if frameworks else ""
    print(f"Next: ./tfb verify {name}{elsewhere} --runtime local --watch")
    return Exit.OK


def make(
    frameworks: Path, name: str, source: str | None = None, language: str | None = None, *, blank: bool = False
) -> tuple[Path, str]:
    """The new folder, and what it was begun from; raises UsageError, and leaves nothing half made.

    Without a source it begins from one of the language; without both, from ``DEFAULT``.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) or name in RESERVED_NAMES:
        raise UsageError(
            f"{name!r} is not a valid name: lower-case letters, digits, dots, dashes; a letter or digit first; none of "
            f"{', '.join(RESERVED_NAMES)}"
        )
    frameworks = trees.find_tree(frameworks).root
    there, ours = scan_folders(frameworks), scan_folders(FRAMEWORKS)
    known = {i.name: i for i in (*there.implementations, *ours.implementations)}
    if name in known:
        raise UsageError(f"{name!r} exists: {known[name].folder}")
    if broken := [trouble for trouble in there.folder_problems if trouble.kind == "problem" and name in trouble.names]:
        raise UsageError(f"{name!r} exists, and is broken: {broken[0]}")
    if source and not blank:
        for found in (there, ours):
            require_selected_valid(found, Selection(test=(source,)))
    begun = None if blank else _source(known, source, language)
    if begun:
        language = begun.folder.parent.name
    elif source or not language:
        raise UsageError("--blank begins from nothing, in a language: leave --from out, give --language LANG")
    elif not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+#.-]*", language):
        raise UsageError(f"--language: {language!r} is not a valid name: letters, digits, + # . - only")
    languages = {i.folder.parent.name.lower(): i.folder.parent.name for i in known.values()}
    language = languages.get(language.lower(), language)
    target = frameworks / language / name
    if target.exists():
        raise UsageError(f"{target} exists already")
    entry: dict[str, object] = {**ENTRY, "language": language}
    if begun:
        shutil.copytree(begun.folder, target, ignore=shutil.ignore_patterns(*NOT_COPIED))
        for path in target.glob(f"{begun.dockerfile.name}*"):
            path.rename(path.with_name(path.name.replace(begun.dockerfile.stem, name, 1)))
        config = json.loads((begun.folder / CONFIG_FILE).read_text(encoding="utf-8"))
        entry = next(tests[begun.variant] for tests in config["tests"] if begun.variant in tests)
    else:
        target.mkdir(parents=True)
        (target / f"{name}.dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    entry = {key: value for key, value in entry.items() if key not in ("tags", "dockerfile")}
    entry |= {"framework": name, "display_name": name, "notes": "", "versus": ""}
    document = {"framework": name, "maintainers": [], "tests": [{"default": entry}]}
    (target / CONFIG_FILE).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    origin = f"from `{begun.name}`" if begun else "blank"
    (target / "README.md").write_text(README.format(name=name, origin=origin), encoding="utf-8")
    return target, origin


def _source(known: dict[str, Implementation], source: str | None, language: str | None) -> Implementation:
    """The one to begin from: of a language the default, a core one, or the one of most test types without a tag."""
    source = source or (None if language else DEFAULT)
    if source and source not in known:
        raise UsageError(f"--from: unknown name {source!r}; {suggest(source, known)}")
    begins = [known[source]] if source else [i for i in known.values() if i.variant == "default"]
    languages = {i.folder.parent.name for i in begins}
    if language:
        begins = [i for i in begins if i.folder.parent.name.lower() == language.lower()]
    if not begins:
        raise UsageError(
            f"--language: nothing in {language!r} to begin from; {suggest(str(language), languages)}\n"
            "For a language that is not here yet: --blank"
        )
    return min(begins, key=lambda i: (i.name != DEFAULT, not i.is_core, bool(i.entry.tags), -len(i.urls), i.name))
