"""The command line accepts every command that a message or help text suggests."""

import re

import pytest
from cyclopts import CycloptsError

from harness.cli.verbs import REPLACED, VERBS, application
from harness.tests.messages import messages, suggested_commands

# Placeholder -> valid value. Other placeholders, and values of f-strings, become "name".
VALUES = {"PERCENT": "5", "SECONDS": "5", "N": "5", "PORT": "80", "TIME": "5m", "MINUTES": "5m", "{}m": "5m"}


def suggestions() -> list[tuple[str, list[str]]]:
    """Return each suggested command and its location."""
    return [
        (str(message), words)
        for message in messages()
        for words in suggested_commands(message.text)
        # Skip placeholders for verbs, and the phrase "start ./tfb as …".
        if words and words[0] not in ("VERB", "{}", "{}{}--help", "as")
    ]


def parse_error(arguments: list[str]) -> str:
    """Return why the parser rejects a command, or "" if the command is valid."""
    # Keep one word of optional flags and of choices.
    arguments = [word.removesuffix("{}").partition("|")[0] or word for word in arguments]
    known = [VALUES.get(word, "name" if re.fullmatch(r"[A-Z]+|\{\}", word) else word) for word in arguments]
    if known[0] not in VERBS and not known[0].startswith("-"):
        return f"unknown verb {known[0]}"
    try:
        application().parse_args(known, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return str(error)
    return ""


@pytest.mark.needs_extra("claims")
@pytest.mark.needs_extra("gate")
def test_suggested_commands_are_accepted_by_the_parser() -> None:
    suggested = suggestions()
    assert len(suggested) > 50
    errors = [
        f"{place}: ./tfb {' '.join(words)}: {error}" for place, words in suggested if (error := parse_error(words))
    ]
    assert errors == []


@pytest.mark.parametrize("flag", REPLACED)
def test_replaced_flags_name_an_existing_command_or_flag(flag: str) -> None:
    assert "--" in REPLACED[flag] or "./tfb" in REPLACED[flag]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("run `./tfb run express --type db` now", "run express --type db"),
        ("Begin:\n  ./tfb report latest   prints it", "report latest"),
        ("use ./tfb clean --yes to remove it", "clean --yes"),
        ("use ./tfb verify NAME to check it", "verify NAME"),
    ],
)
def test_commands_end_where_the_sentence_goes_on(text: str, command: str) -> None:
    assert [" ".join(words) for words in suggested_commands(text)] == [command]
