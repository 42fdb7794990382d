"""What ``--help`` and ``--version`` print, and where TechEmpower's flags without a counterpart lead."""

import argparse
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from harness.cli.verbs import GROUPS, VERBS
from harness.errors import UsageError

WIDTH = 80
# Flags that the short help explains; it names the others.
EVERYDAY = {
    *("names", "test", "mode", "exclude", "type", "list_tests", "test_lang"),
    *("profile", "time", "replicates", "resume", "dry_run"),
    *("runtime", "yes", "json", "format", "watch", "help"),
}
# TechEmpower's flags whose work is done by something else here, with what does it.
REPLACED = {
    "--clean": "./tfb clean removes the images of runs; a run's results are a folder of results/, removed by hand",
    "--audit": "./tfb list names every broken configuration, ./tfb verify NAME checks what an implementation answers",
    "--parse": "./tfb report RUN --format techempower writes the results.json of a run again from its files",
    "--results-upload-uri": "./tfb site --output DIR makes static pages, ./tfb report --format techempower the file",
    "--extra-docker-runtime-args": "--cpuset-cpus, --test-container-memory and --network-mode limit the containers",
}
DESCRIPTIONS = {
    "": "Builds, verifies, measures and ranks web-framework implementations.",
    "run": "Build, verify, measure and rank implementations; --dry-run shows the plan.",
    "verify": "Check every answer of implementations thoroughly, without load: what was\n"
    "expected, what came, and the rule that says so.",
    "debug": "Start one implementation with its database, print addresses and its log, and\nstay until Ctrl-C.",
}
EXAMPLES = {
    "": "",
    "run": """\
examples:
  ./tfb run                               the core implementations, ten minutes
  ./tfb run express axum --type db query  two of them, on two tests
  ./tfb run --resume                      go on with what was interrupted
""",
    "verify": """\
examples:
  ./tfb verify express --type json db     two tests of one implementation
  ./tfb verify my-framework --watch       again whenever a file of it changes
  ./tfb verify --format junit > tests.xml the core ones, for a CI server
""",
    "debug": "example:\n  ./tfb debug express --server-port 8080\n",
}
OVERVIEW = """\
Builds, verifies, measures and ranks web-framework implementations.

  ./tfb run                            the core implementations: ten minutes
  ./tfb run express axum --type db     two implementations, one test
  ./tfb verify my-framework --watch    check answers while you write
  ./tfb dashboard                      the results in a browser

{verbs}

TechEmpower's flags do without a verb: ./tfb --mode verify --test express
Flags: ./tfb VERB --help, all of a run's: ./tfb run --help-all or docs/cli.md
Exit codes: 0 all measured and verified, 1 something failed, 2 usage,
            3 the machine lacks something, 130 interrupted
"""


def overview() -> str:
    """``./tfb --help``: every verb by group, and where the flags are explained."""
    parts = []
    for group in dict.fromkeys((*GROUPS, *(verb.group for verb in VERBS.values()))):
        parts.append(f"{group}:")
        parts += [f"  {name:<11}{verb.help}" for name, verb in VERBS.items() if verb.group == group]
    return OVERVIEW.format(verbs="\n".join(parts))


def short(parser: argparse.ArgumentParser, examples: str = "") -> str:
    """The everyday flags with their meaning, and the names of the others."""
    with _hidden(parser) as others:
        text = parser.format_help()
    if others:
        more = textwrap.fill(
            "also (--help-all explains them): " + " ".join(others),
            WIDTH,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        text += f"\n{more}\n"
    return text + (f"\n{examples}" if examples else "")


@contextmanager
def _hidden(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """The parser without its rarer flags, whose names are given."""
    rare = [a for a in parser._actions if a.help is not argparse.SUPPRESS and a.dest not in EVERYDAY]
    words = [(action, action.help) for action in rare]
    for action in rare:
        action.help = argparse.SUPPRESS
    try:
        yield [action.option_strings[0] for action in rare if action.option_strings and action.dest != "help_all"]
    finally:
        for action, help_text in words:
            action.help = help_text


class Lines(argparse.RawDescriptionHelpFormatter):
    """A flag a line where that fits: ``--tag TAG …`` instead of ``--tag TAG [TAG ...]``."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=WIDTH + 2)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs in ("+", "*"):
            return f"{self._metavar_formatter(action, default_metavar)(1)[0]} …"
        return super()._format_args(action, default_metavar)


class _Printing(argparse.Action):
    """A flag that prints and ends the program."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:  # noqa: A002 - argparse's
        super().__init__(option_strings, argparse.SUPPRESS if dest == "version" else dest, nargs=0, help=help)
        self.default = argparse.SUPPRESS


class ShortHelp(_Printing):
    """``--help``: at most forty lines."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:  # noqa: ANN401 - argparse's
        """Print and leave."""
        verb = parser.prog.removeprefix("./tfb").strip()
        print(short(parser, EXAMPLES.get(verb, "")) if verb else overview(), end="")
        parser.exit()


class FullHelp(_Printing):
    """``--help-all``: every flag."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:  # noqa: ANN401 - argparse's
        """Print and leave."""
        print(parser.format_help(), end="")
        parser.exit()


class Version(_Printing):
    """``--version``: the package's and the commit's."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:  # noqa: ANN401 - argparse's
        """Print and leave."""
        print(version())
        parser.exit()


class Replaced(argparse.Action):
    """A flag of TechEmpower's that something else stands for: a usage error that says what."""

    def __call__(self, *asked: Any) -> NoReturn:  # noqa: ANN401 - argparse's
        """Say what does its work."""
        flag = str(asked[-1])
        raise UsageError(f"{flag} is TechEmpower's; here {REPLACED[flag]}")


def version() -> str:
    """``tfb 0.1.0, commit 1a2b3c4d5e6f, Python 3.12.1``; without the commit outside a checkout."""
    import platform
    import tomllib

    from harness.errors import EnvironmentLacksError
    from harness.host import process
    from harness.paths import REPOSITORY

    number = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    try:
        found = process.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"], seconds=10)
        commit = f", commit {found.stdout.strip()}" if found.status == 0 else ""
    except EnvironmentLacksError:
        commit = ""
    return f"tfb {number}{commit}, Python {platform.python_version()}"
