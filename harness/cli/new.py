"""``./tfb new NAME``: the folder of a new implementation: begun from one that passes, or without its code."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from harness.cli import flags
from harness.errors import Exit, UsageError
from harness.paths import FRAMEWORKS, REPOSITORY
from harness.plan.discovery import BEGUN, CONFIG_FILE, ROUTES, Implementation, scan
from harness.plan.size import LANGUAGES
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plan.words import suggest
from harness.verify.checks.registry import CHECKS

DEFAULT = "express"
PATHS = {
    "json": "/json",
    "plaintext": "/plaintext",
    "db": "/db",
    "query": "/queries?queries=",
    "fortune": "/fortunes",
    "update": "/updates?queries=",
}
NOT_COPIED = ("node_modules", "target", "dist", "build", "__pycache__", ".venv", "README.md")
CODE = tuple(f"*{ending}" for ending in LANGUAGES)
PARAGRAPH = re.compile(
    r"^- \*\*([a-z-]+\.\d+)\*\* (?:\((?:TE|data|ours)\) )?(.*?)(?=^- \*\*|^#|^\S|\Z)", re.MULTILINE | re.DOTALL
)
README = f"""# {{name}}

{BEGUN}

Run it alone: `./tfb debug {{name}}`

What was tuned, and what the measurement said: …

{{begun}}
"""
# Of a language that no implementation is written in yet.
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
            completer=flags.names,
        ),
    ] = None,
    language: Annotated[
        str | None, Parameter(help="a folder of frameworks/; default: that of the source", completer=flags.languages)
    ] = None,
    blank: Annotated[
        bool, Parameter(help=f"without its code, in any --language: {ROUTES} says what each route must do")
    ] = False,
    frameworks: Annotated[str | None, Parameter(help="another folder of implementations")] = None,
) -> int:
    """Make frameworks/<Language>/NAME from an implementation that passes: change it into yours."""
    asked = not (name or source or language)
    name = name or _ask("name")
    source = _ask(f"begin from [{DEFAULT}]", DEFAULT) if asked and not blank else source
    target, origin = make(Path(frameworks) if frameworks else FRAMEWORKS, name, source, language, blank=blank)
    print(f"{target}/\n{origin}\n")
    if blank:
        print(f"{ROUTES} says what each route must do: write one after the other (verify {name} --type json).")
    print(f"Next: ./tfb verify {name} --runtime local --watch")
    return Exit.OK


def make(
    frameworks: Path, name: str, source: str | None = None, language: str | None = None, *, blank: bool = False
) -> tuple[Path, str]:
    """The new folder, and what it was begun from; raises UsageError, and leaves nothing half made.

    Without a source it begins from one of the language; without both, from ``DEFAULT``.
    """
    known = _known(frameworks, name)
    if source is not None and source not in known:
        raise UsageError(f"--from: unknown name {source!r}; {suggest(source, known)}")
    if not (source or language) and (blank or DEFAULT not in known):
        raise UsageError("what does it begin from? give --language LANG, or --from NAME")
    begun = known[source or DEFAULT] if source or not language else _of_language(known.values(), language, blank=blank)
    if begun and language and language.lower() != begun.folder.parent.name.lower():
        raise UsageError(
            f"--from {begun.name} is {begun.folder.parent.name}, --language says {language}: leave one of them out"
        )
    target = frameworks / (begun.folder.parent.name if begun else _spelled(str(language))) / name
    if target.exists():
        raise UsageError(f"{target} exists already")
    if begun:
        shutil.copytree(begun.folder, target, ignore=shutil.ignore_patterns(*NOT_COPIED, *(CODE if blank else ())))
        for path in target.glob(f"{begun.dockerfile.name}*"):
            path.rename(path.with_name(path.name.replace(begun.dockerfile.stem, name, 1)))
    else:
        target.mkdir(parents=True)
        (target / f"{name}.dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    origin = f"Begun from `{begun.name}`." if begun else "Begun blank."
    entry = _entry(begun, name, target.parent.name, blank=blank)
    config = {"framework": name, "maintainers": [], "tests": [{"default": entry}]}
    (target / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (target / "README.md").write_text(README.format(name=name, begun=origin), encoding="utf-8")
    if blank:
        (target / ROUTES).write_text(routes(name), encoding="utf-8")
    return target, origin


def _known(frameworks: Path, name: str) -> Mapping[str, Implementation]:
    """What there is already; raises UsageError where the name is not valid or taken."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise UsageError(
            f"{name!r} is not a valid name: lower-case letters, digits, dots, dashes; a letter or digit first"
        )
    known = {i.name: i for i in (*scan(frameworks).implementations, *scan(FRAMEWORKS).implementations)}
    if name in known:
        raise UsageError(f"{name!r} exists: {known[name].folder}")
    return known


def _of_language(known: Iterable[Implementation], language: str, *, blank: bool) -> Implementation | None:
    """The one to begin from: the default, a core one, or the one of most test types that no tag sets apart.

    None that was begun itself and is not finished.
    """
    mains = [i for i in known if i.variant == "default" and not i.begun]
    begins = [i for i in mains if i.folder.parent.name.lower() == language.lower()]
    if begins:
        return min(begins, key=lambda i: (i.name != DEFAULT, not i.core, bool(i.entry.tags), -len(i.urls), i.name))
    if not blank:
        raise UsageError(
            f"--language: no implementation in {language!r} to begin from; "
            f"{suggest(language, {i.folder.parent.name for i in mains})}. For a language that is not here yet: --blank"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+#.-]*", language):
        raise UsageError(f"--language: {language!r} is not a valid name: letters, digits, + # . - only")
    return None


def _spelled(language: str) -> str:
    """As Pygments spells it, where only capitals differ: Elixir, PHP."""
    try:
        name = str(get_lexer_by_name(language.lower()).name)
    except ClassNotFound:
        return language
    return name if name.lower() == language.lower() else language


def _entry(begun: Implementation | None, name: str, language: str, *, blank: bool) -> dict[str, object]:
    """The configuration of its only test: that of the source under the new name; of a blank one the scored tests."""
    entry: dict[str, object] = {**ENTRY, "language": language}
    if begun:
        config = json.loads((begun.folder / CONFIG_FILE).read_text(encoding="utf-8"))
        entry = next(tests[begun.variant] for tests in config["tests"] if begun.variant in tests)
    if blank:
        urls = {TEST_TYPES[kind].url_key: path for kind, path in PATHS.items()}
        entry = urls | {key: value for key, value in entry.items() if not key.endswith("_url")}
    entry = {key: value for key, value in entry.items() if key not in ("tags", "dockerfile")}
    return entry | {"framework": name, "display_name": name, "notes": "", "versus": ""}


def routes(name: str) -> str:
    """Each route with what docs/requirements.md says of it."""
    known = dict(paragraphs())
    sections = {"Every answer": [rule for rule in known if rule.startswith("http.")]}
    for kind, path in PATHS.items():
        sections[f"GET {path}{'N' if path.endswith('=') else ''}"] = rules(TEST_TYPES[kind])
    parts = [
        f"# Routes of {name}",
        f"Remove this file when they are written. Delete the `_url` in {CONFIG_FILE} of each route that you do not\n"
        "write: it fails with 404. Where to listen and where the database is: CONTRIBUTING.md. The tables are `world`\n"
        '(`id`, `randomnumber`), its twin `"World"`, either of which will do, and `fortune` (`id`, `message`).',
    ]
    for title, names in sections.items():
        parts += [f"## {title}", "\n".join(f"- **{rule}** {known[rule]}" for rule in names)]
    return "\n\n".join(parts) + "\n"


def rules(test: TestType) -> list[str]:
    """The paragraphs that verification checks of a test type beside those of every answer, in the page's order."""
    checked = {check.rule for check in CHECKS.values() if check.applies(test.name)}
    elsewhere = ("http.", "load.", "declared.")
    return [name for name, _ in paragraphs() if name in checked and not name.startswith(elsewhere)]


def paragraphs() -> Iterator[tuple[str, str]]:
    """Name and text of every paragraph of docs/requirements.md, without the checks that enforce it."""
    page = (REPOSITORY / "docs" / "requirements.md").read_text(encoding="utf-8")
    for name, text in PARAGRAPH.findall(page):
        yield name, " ".join(text.split()).rpartition(" — ")[0] or " ".join(text.split())


def _ask(what: str, default: str = "") -> str:
    if not sys.stdin.isatty():
        raise UsageError("give the name: ./tfb new NAME")
    print(f"{what}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip() or default
    if not answer:
        raise UsageError(f"{what}: an answer is needed")
    return answer
