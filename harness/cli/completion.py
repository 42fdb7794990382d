"""``./tfb completion SHELL``: what a shell asks on Tab, answered by argcomplete from the parsers themselves."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from harness.cli.arguments import MODES, Parser, parser
from harness.cli.verbs import VERBS
from harness.errors import Exit
from harness.paths import FRAMEWORKS, PROFILES, RESULTS
from harness.records import bounded

CONFIG_BYTES = 1 << 20  # as harness.plan.discovery, which takes too long to load for a key press
SHELLS = ("bash", "zsh", "fish")

# Asks the program as it was typed (./tfb, ../tfb, a path, or tfb on PATH), of the command at the cursor alone.
FISH = """\
function __fish_tfb_complete
    set -l program (string replace -r -- '^~' ~ (commandline -opc)[1])
    type -q -- $program; or return
    set -lx _ARGCOMPLETE 1
    set -lx _ARGCOMPLETE_DFS \\t
    set -lx _ARGCOMPLETE_IFS \\n
    set -lx _ARGCOMPLETE_SUPPRESS_SPACE 1
    set -lx _ARGCOMPLETE_SHELL fish
    set -lx COMP_LINE (commandline -pc | string collect)
    set -lx COMP_POINT (string length -- $COMP_LINE)
    $program 8>&1 9>/dev/null 1>/dev/null 2>&1 </dev/null
end
complete --command tfb --no-files --arguments '(__fish_tfb_complete)'
"""

# The same for zsh: argcomplete's sends the whole line, and finds no words after another command on it.
ZSH = """\
_tfb() {
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX" IFS=$'\\013'
    local -a found nospace
    found=($(_ARGCOMPLETE=1 _ARGCOMPLETE_SHELL=zsh _ARGCOMPLETE_SUPPRESS_SPACE=1 _ARGCOMPLETE_IFS=$IFS \\
        COMP_LINE=$line COMP_POINT=${#line} ${~words[1]} 8>&1 9>/dev/null 1>/dev/null 2>&1 </dev/null))
    found=("${found[@]%:}") # no description
    [[ $#found -eq 1 && $found[1] == *[=/] ]] && nospace=(-S '')
    _describe tfb found -o nosort $nospace || _files
}
compdef _tfb tfb ./tfb
"""
ASKED = "_ARGCOMPLETE"  # set by the shell's function: the number of the word that is the program's name


def arguments() -> Parser:
    """The flags of the verb."""
    p = Parser(
        prog="./tfb completion",
        description="Print what makes a shell complete verbs, flags, names of implementations, profiles and runs.",
        epilog='bash: eval "$(./tfb completion bash)" in ~/.bashrc; zsh: the same with zsh, after compinit; '
        "fish: ./tfb completion fish > ~/.config/fish/conf.d/tfb.fish",
    )
    p.add_argument("shell", choices=SHELLS)
    return p


def main(argv: Sequence[str]) -> int:
    """Print the shell's function, for ``tfb`` on PATH and ``./tfb`` in this folder."""
    shell = arguments().parse_args(list(argv)).shell
    if shell == "bash":
        from argcomplete.shell_integration import shellcode

        print(shellcode(["tfb", "./tfb"], shell=shell))
    else:
        print(ZSH if shell == "zsh" else FISH, end="")
    return Exit.OK


def answer(out: TextIO | None = None, leave: Callable[[int], NoReturn] = os._exit) -> None:
    """Answer the shell's question and end the process; returns where it asked nothing."""
    if ASKED not in os.environ:
        return
    import argcomplete
    from argcomplete.lexers import split_line

    start = int(os.environ[ASKED])
    words = split_line(os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0")))[3][start:]
    if words and words[0] in VERBS:
        asked = _of_verb(words[0])
        os.environ[ASKED] = str(start + 1)  # the verb is the program's name
    else:
        asked = parser()
        if not words:
            asked.add_argument("verb", nargs="?", choices=tuple(VERBS))
    argcomplete.autocomplete(with_values(asked), always_complete_options=False, output_stream=out, exit_method=leave)


def _of_verb(verb: str) -> Parser:
    if verb in MODES:
        return parser(verb)
    import importlib

    module = importlib.import_module(VERBS[verb].module)
    known: Parser = module.arguments() if hasattr(module, "arguments") else Parser(prog=verb)
    return known


def with_values(asked: Parser) -> Parser:
    """The parser, its actions with what may stand there; cheap enough for a key press: no model is loaded."""
    values = {
        **dict.fromkeys(("names", "name", "test", "exclude", "reference", "source"), names),
        **dict.fromkeys(("test_lang", "language"), languages),
        **dict.fromkeys(("run", "run_a", "run_b", "resume"), runs),
        "profile": profiles,
        "type": known_test_types,
        "tag": tags,
        "list_tag": tags,
    }
    for action in asked._actions:
        if action.dest in values and action.choices is None:
            vars(action)["completer"] = values[action.dest]  # where argcomplete looks for it
    return asked


def _configs() -> Iterator[tuple[Path, Any]]:
    """The configurations as they stand; a broken one is told by every other command."""
    for path in sorted(FRAMEWORKS.glob("*/*/benchmark_config.json")):
        with contextlib.suppress(OSError, ValueError):
            yield path, bounded.parse(bounded.read(path, CONFIG_BYTES))


def _entries() -> Iterator[tuple[str, Any]]:
    """Every implementation by name with its entry."""
    for _, document in _configs():
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            for variant, entry in ((v, e) for tests in document["tests"] for v, e in tests.items()):
                framework = str(document["framework"])
                yield framework if variant == "default" else f"{framework}-{variant}", entry


def names(**_: object) -> list[str]:
    """Implementations, and the words for many."""
    return ["all", "run", *(name for name, _entry in _entries())]


def languages(**_: object) -> list[str]:
    """The folders of frameworks/."""
    return sorted({path.parent.parent.name for path, _ in _configs()})


def tags(**_: object) -> list[str]:
    """All tags."""
    return sorted({str(tag) for _, entry in _entries() for tag in (entry.get("tags") or [])})


def runs(**_: object) -> list[str]:
    """Runs, newest first."""
    return sorted((path.parent.name for path in RESULTS.glob("*/run.json")), reverse=True)


def profiles(**_: object) -> list[str]:
    """The profiles of config/."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def known_test_types(**_: object) -> list[str]:
    """The one list that needs the models."""
    from harness.plan.testtypes.registry import TEST_TYPES

    return [*TEST_TYPES, "all"]
