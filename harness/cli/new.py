"""``./tfb new NAME``: the folder of a new implementation, begun from one that passes every check."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.cli import blank
from harness.cli.arguments import Parser
from harness.errors import Exit, UsageError
from harness.paths import FRAMEWORKS
from harness.plan.discovery import CONFIG_FILE, Implementation, scan
from harness.plan.words import suggest

DEFAULT = "express"
LEFT_OUT = shutil.ignore_patterns("node_modules", "target", "dist", "build", "__pycache__", ".venv", "README.md")
README = """# {name}

What it shows: …

Run it alone: `./tfb --test {name} --mode debug`

What was tuned, and what the measurement said: …

Begun from `{source}`.
"""


def arguments() -> Parser:
    """The flags of ``./tfb new``."""
    p = Parser(
        prog="./tfb new",
        description="Make frameworks/<Language>/NAME from an implementation that passes: change it into yours.",
    )
    p.add_argument("name", nargs="?", help="name of the framework: lower case, digits, dots, dashes")
    p.add_argument(
        "--from",
        dest="source",
        metavar="NAME",
        help=f"implementation to begin from; default {DEFAULT}, with --language one of that language",
    )
    p.add_argument("--language", metavar="LANG", help="a folder of frameworks/; default: that of the source")
    p.add_argument(
        "--blank",
        action="store_true",
        help="with any --language: configuration, Dockerfile, and the routes to fill in with what each must do",
    )
    p.add_argument("--frameworks", metavar="DIR", help="another folder of implementations")
    return p


def main(argv: Sequence[str]) -> int:
    """Make the folder; asks for what is not given when somebody sits at a terminal."""
    options = arguments().parse_args(list(argv))
    frameworks = Path(options.frameworks) if options.frameworks else FRAMEWORKS
    name = options.name or _ask("name")
    source = options.source
    if options.blank:
        folder = make_blank(frameworks, name, options.language, source)
        print(f"{folder}/\n\nFill in the routes, then: ./tfb verify {name} --runtime local --type json --watch")
        return Exit.OK
    if options.name is None and not source and not options.language:
        source = _ask(f"begin from [{DEFAULT}]", DEFAULT)
    folder = make(frameworks, name, source, options.language)
    print(f"{folder}/\n\nNext: ./tfb verify {name} --runtime local --watch")
    return Exit.OK


def make(frameworks: Path, name: str, source: str | None = None, language: str | None = None) -> Path:
    """Copy the source's folder under the new name; raises UsageError, and leaves nothing half made.

    Without a source: one of the language; without a language: that of the source, and of ``DEFAULT`` without both.
    """
    known = _others(frameworks, name)
    if source is not None and source not in known:
        raise UsageError(f"--from: unknown name {source!r}; {suggest(source, known)}")
    begun = known[source or DEFAULT] if source or not language else _of_language(known.values(), language)
    if language and language.lower() != _language(begun).lower():
        raise UsageError(
            f"--from {begun.name} is {_language(begun)}, --language says {language}: leave one of them out"
        )
    target = frameworks / _language(begun) / name
    if target.exists():
        raise UsageError(f"{target} exists already")
    shutil.copytree(begun.folder, target, ignore=LEFT_OUT)
    for path in target.glob(f"{begun.name}.dockerfile*"):
        path.rename(path.with_name(path.name.replace(begun.name, name, 1)))
    (target / CONFIG_FILE).write_text(json.dumps(_config(begun, name), indent=2) + "\n", encoding="utf-8")
    (target / "README.md").write_text(README.format(name=name, source=begun.name), encoding="utf-8")
    return target


def make_blank(frameworks: Path, name: str, language: str | None, source: str | None) -> Path:
    """A folder with everything but the code; raises UsageError, and leaves nothing half made."""
    if source or not language:
        raise UsageError("--blank begins from nothing: give --language LANG, without --from")
    _others(frameworks, name)
    folder = blank.language_of(language)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+#.-]*", folder):
        raise UsageError(f"--language: {language!r} is not a valid name: letters, digits, + # . - only")
    target = frameworks / folder / name
    if target.exists():
        raise UsageError(f"{target} exists already")
    blank.make(target, name, folder)
    return target


def _others(frameworks: Path, name: str) -> dict[str, Implementation]:
    """What there is already; raises UsageError where the name is not valid or taken."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise UsageError(
            f"{name!r} is not a valid name: lower-case letters, digits, dots, dashes; a letter or digit first"
        )
    known = {i.name: i for i in (*scan(frameworks).implementations, *scan(FRAMEWORKS).implementations)}
    if name in known:
        raise UsageError(f"{name!r} exists: {known[name].folder}")
    return known


def _language(implementation: Implementation) -> str:
    """The folder that it stands in, which names its language."""
    return implementation.folder.parent.name


def _of_language(known: Iterable[Implementation], language: str) -> Implementation:
    """The one to begin from: the default, a core one, or one that no tag sets apart (a limit, a part of a study)."""
    implementations = list(known)
    begins = [i for i in implementations if _language(i).lower() == language.lower() and i.variant == "default"]
    if not begins:
        languages = {_language(i) for i in implementations}
        raise UsageError(
            f"--language: no implementation in {language!r} to begin from; {suggest(language, languages)}. For a "
            "language that is not here yet: --blank, with the routes to fill in"
        )
    return min(begins, key=lambda i: (i.name != DEFAULT, not i.core, bool(i.entry.tags), i.name))


def _config(begun: Implementation, name: str) -> dict[str, object]:
    """The source's configuration with the new name, and its default test alone."""
    config = json.loads((begun.folder / CONFIG_FILE).read_text(encoding="utf-8"))
    default = next(entry[begun.variant] for entry in config["tests"] if begun.variant in entry)
    default |= {"framework": name, "display_name": name, "notes": "", "versus": ""}
    return {"framework": name, "maintainers": [], "tests": [{"default": default}]}


def _ask(what: str, default: str = "") -> str:
    if not sys.stdin.isatty():
        raise UsageError("give the name: ./tfb new NAME")
    print(f"{what}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip() or default
    if not answer:
        raise UsageError(f"{what}: an answer is needed")
    return answer
