"""The parser of every command, and the types of its values; loads nothing that a quick start would feel."""

import argparse
import difflib
import re
from typing import Any

from harness.cli.verbs import VERBS
from harness.errors import UsageError

MOST = 1_000_000  # connections, or queries a request
MOST_LEVELS = 1000  # of one sweep, as of a profile's
MOST_REPLICATES = 10_000
LONGEST_SECONDS = 30 * 86_400


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
            from harness.plan.words import suggest

            hint = suggest(str(value), [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"unknown value {value!r}; {hint}")


def levels(text: str) -> tuple[int, ...]:
    """One level, or TechEmpower's sequence ``start:step:end`` (inclusive)."""
    try:
        numbers = tuple(int(part) for part in text.split(":"))
    except ValueError:
        numbers = ()
    sequence = range(0)
    if len(numbers) == 3 and numbers[1] > 0 and 0 < numbers[0] <= numbers[2]:
        sequence = range(numbers[0], numbers[2] + 1, numbers[1])
    if len(numbers) == 1 and numbers[0] > 0:
        sequence = range(numbers[0], numbers[0] + 1)
    if sequence and (sequence[-1] > MOST or (sequence[-1] - sequence[0]) // sequence.step >= MOST_LEVELS):
        raise argparse.ArgumentTypeError(f"{text:.40}: at most {MOST_LEVELS} levels, none above {MOST:,}")
    if not sequence:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a whole number above 0 nor a sequence start:step:end"
        )
    return tuple(sequence)


def seconds(text: str) -> float:
    """Whole seconds above 0: wrk counts in seconds."""
    if text.isdecimal() and len(text) < 9 and 0 < int(text) <= LONGEST_SECONDS:
        return float(text)
    raise argparse.ArgumentTypeError(
        f"{text[:40]!r} is not a whole number of seconds above 0, at most {LONGEST_SECONDS} (30 days)"
    )


def duration(text: str) -> float:
    """Seconds of a time such as ``90s``, ``10m``, ``1h`` or ``1h30m``."""
    match = re.fullmatch(r"(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s?)?", text, re.ASCII)
    found = (
        sum(int(number or 0) * unit for number, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0
    )
    if 0 < found <= LONGEST_SECONDS:
        return float(found)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time such as 90s, 10m or 1h30m, at most 720h")


def port(text: str) -> int:
    """A TCP port."""
    if text.isdecimal() and len(text) < 9 and 0 < int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port: 1 to 65535")


def free_or_port(text: str) -> int:
    """A TCP port, or 0 for a free one."""
    return 0 if text == "0" else port(text)


def replicates(text: str) -> int:
    """A number above 0."""
    if text.isdecimal() and len(text) < 9 and 0 < int(text) <= MOST_REPLICATES:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0, at most {MOST_REPLICATES}")


def seed(text: str) -> int:
    """A seed of 64 bits."""
    if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number of at most 18 digits")
