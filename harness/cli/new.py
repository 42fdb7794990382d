"""``./tfb new NAME``: the folder of a new implementation: begun from one that passes, or blank."""

import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli import blank, values
from harness.errors import Exit, UsageError
from harness.paths import FRAMEWORKS
from harness.plan.discovery import CONFIG_FILE, Implementation, scan
from harness.plan.words import suggest

DEFAULT = "express"
LEFT_OUT = shutil.ignore_patterns("node_modules", "target", "dist", "build", "__pycache__", ".venv", "README.md")
README = """# {name}

What it shows: …

Run it alone: `./tfb debug {name}`

What was tuned, and what the measurement said: …

Begun from `{source}`.
"""


def command(
    name: Annotated[str, Parameter(help="name of the framework: lower case, digits, dots, dashes")] = "",
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(name="--from", help=f"implementation to begin from, default {DEFAULT}", completer=values.names),
    ] = None,
    language: Annotated[
        str | None, Parameter(help="a folder of frameworks/; default: that of the source", completer=values.languages)
    ] = None,
    begin_blank: Annotated[
        bool, Parameter(name="--blank", help="in any --language: routes to fill in, with what each must do")
    ] = False,
    frameworks: Annotated[str | None, Parameter(help="another folder of implementations")] = None,
) -> int:
    """Make frameworks/<Language>/NAME from an implementation that passes: change it into yours."""
    tree = Path(frameworks) if frameworks else FRAMEWORKS
    if begin_blank:
        target = make_blank(tree, name or _ask("name"), language, source)
        print(f"{target}/\n\nFill in the routes, one test after the other (--type json).")
    else:
        asked = not (name or source or language)
        name = name or _ask("name")
        target = make(tree, name, _ask(f"begin from [{DEFAULT}]", DEFAULT) if asked else source, language)
        print(f"{target}/\n")
    print(f"Next: ./tfb verify {target.name} --runtime local --watch")
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
    target = _free(frameworks / _language(begun) / name)
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
    target = _free(frameworks / folder / name)
    blank.make(target, name, folder)
    return target


def _free(target: Path) -> Path:
    if target.exists():
        raise UsageError(f"{target} exists already")
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
