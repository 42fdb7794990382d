"""The parser of every command, and the types of its values; loads nothing that a quick start would feel."""

import argparse
import difflib
import re
from typing import Any

from harness.cli.verbs import VERBS
from harness.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of leaving the process."""

    def error(self, message: str) -> Any:  # noqa: ANN401 - argparse's signature says NoReturn, which it never enforces
        """Say which command has the help."""
        raise UsageError(f"{message}\nSee {self.prog} --help")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - argparse's overloads
        """As argparse does, with the nearest flag or verb for a word that is none."""
        options, extras = self.parse_known_args(args, namespace)
        return self._complete(options, extras)

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as above
        """As ``parse_args``, with names before, between and after the flags."""
        options, extras = self.parse_known_intermixed_args(args, namespace)
        return self._complete(options, extras)

    def _complete(self, options: argparse.Namespace, extras: list[str]) -> argparse.Namespace:
        """The options where no word was left over."""
        if extras:
            word = extras[0].partition("=")[0]
            known = list(self._option_string_actions) if word.startswith("-") else list(VERBS)
            near = difflib.get_close_matches(word, known, n=2)
            self.error(f"unknown argument {extras[0]!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
        return options

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """An unknown value names the flag, the nearest allowed one, or all of them."""
        if action.choices is not None and value not in action.choices:
            from harness.request.words import suggest

            hint = suggest(str(value), [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"unknown value {value!r}; {hint}")


def levels(text: str) -> tuple[int, ...]:
    """One level, or TechEmpower's sequence ``start:step:end`` (inclusive)."""
    try:
        numbers = tuple(int(part) for part in text.split(":"))
    except ValueError:
        numbers = ()
    if len(numbers) == 3 and numbers[1] > 0 and 0 < numbers[0] <= numbers[2]:
        return tuple(range(numbers[0], numbers[2] + 1, numbers[1]))
    if len(numbers) == 1 and numbers[0] > 0:
        return numbers
    raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number above 0 nor a sequence start:step:end")


def seconds(text: str) -> float:
    """Whole seconds above 0: wrk counts in seconds."""
    if text.isdigit() and int(text) > 0:
        return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds above 0")


def duration(text: str) -> float:
    """Seconds of a time such as ``90s``, ``10m``, ``1h`` or ``1h30m``."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", text)
    found = (
        sum(int(number or 0) * unit for number, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0
    )
    if found > 0:
        return float(found)
    raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 10m or 1h30m")


def port(text: str) -> int:
    """A TCP port."""
    if text.isdigit() and 0 < int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535")


def replicates(text: str) -> int:
    """A number above 0."""
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
